import type { Due } from "../../core/harness/due.js";
import type { RunState } from "../../core/harness/state.js";
import type { TimelessCommand } from "../../core/protocol/commands.js";
import { trialRecords } from "./trial-records.js";

/** What is due and needs nobody but the core. */
export type Settled = Exclude<Due, { kind: "call" | "measurement" | "session" }>;

/** The command that settles it. `blobs`: where the per-record results lie that judging a trial needs. */
export function settlingCommand(item: Settled, state: RunState, blobs: { readonly blob: (digest: string) => Uint8Array }): TimelessCommand {
  switch (item.kind) {
    case "adjudicate":
      return { type: "adjudicate", trial: item.trial, records: trialRecords(state, item.trial, blobs) };
    case "wake_up":
      return { type: "fire_wake_up", wakeUp: item.wakeUp };
    case "advance":
      return { type: "advance" };
    case "exhaust":
      return { type: "exhaust", cap: item.cap };
    case "conclude":
      return { type: "conclude" };
  }
}
