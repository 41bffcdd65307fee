import { setTimeout as sleep } from "node:timers/promises";
import { isOwned } from "../adapters/ledger/owner.js";
import { isOver, isRunning } from "../core/harness/due.js";
import { evolve } from "../core/harness/evolve.js";
import type { RunState } from "../core/harness/state.js";
import { parseEvent, type StoredRunEvent } from "../core/protocol/events.js";
import { inspectRun } from "./inspect.js";
import type { Project } from "./project.js";

/** How often it is looked whether somebody still works on the run, in ms. */
const lookMs = 1000;

/** Whether a process works on a run now. */
export function isWorkedOn(project: Project, name: string): boolean {
  return isOwned(project.existingRun(name));
}

/** Why a run is not followed any more. */
export type FollowEnd = "over" | "halted" | "without an owner" | "left";

/** Who follows a run: `onStart` is told where it stands, `onEvent` every later event with the state after it. */
export interface Follower {
  onStart(state: RunState): void;
  onEvent(event: StoredRunEvent, state: RunState): void;
}

/**
 * Follows a run that another process works on, from now on, reading beside it. Ends when the run is over or halted, when nobody works on it, or when `signal` aborts.
 */
export async function followRun(
  project: Project,
  name: string,
  hear: Follower,
  signal: AbortSignal,
): Promise<{ readonly end: FollowEnd; readonly state: RunState }> {
  const { ledger, state, folder, close } = inspectRun(project, name);
  // Read from where the state stands: what came between the fold and the subscription is not announced.
  const stop = ledger.subscribe(() => {
    for (const event of ledger.read(state.version)) {
      const parsed = parseEvent(event);
      hear.onEvent(parsed, evolve(state, parsed));
    }
  });
  try {
    hear.onStart(state);
    // Its last words may come after its owner has let go: nobody there is believed when it was so at two looks.
    for (let unowned = 0; ; unowned = isOwned(folder) ? 0 : unowned + 1) {
      if (signal.aborted) return { end: "left", state };
      if (isOver(state.phase)) return { end: "over", state };
      if (unowned >= 2) return { end: isRunning(state) ? "without an owner" : "halted", state };
      await sleep(lookMs, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    stop();
    close();
  }
}
