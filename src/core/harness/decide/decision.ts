import type { NewBlob } from "../../ports/ledger.js";
import type { Decision } from "../../protocol/commands.js";
import { RefusedError } from "../../protocol/errors.js";
import type { RunEvent } from "../../protocol/events.js";
import type { RunState } from "../state.js";

/** Answers one kind of command, or throws RefusedError and changes nothing. */
export type Handler<C> = (state: RunState, command: C) => Decision;

export function only(...events: RunEvent[]): Decision {
  return { events, blobs: [] };
}

export function withBlobs(blobs: readonly NewBlob[], ...events: RunEvent[]): Decision {
  return { events, blobs };
}

export function refuse(expected: string, found: string, todo?: string): RefusedError {
  return new RefusedError(todo === undefined ? { expected, found } : { expected, found, todo });
}
