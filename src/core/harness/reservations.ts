import { type Amount, exceeds } from "../protocol/budget.js";
import type { Expected } from "../protocol/expected.js";
import { callReservation } from "../protocol/run.js";
import { configurationOf, type RunState } from "./state.js";

/** Of a call, what its reservation hangs on. */
interface Reserving {
  readonly role: string;
  readonly expects: Expected;
}

/** What one round of a call reserves before it starts: the most that a question can use, and the trial that may come of it. */
export function roundReservation(state: RunState, call: Reserving): Amount {
  // Only an answer that brings a candidate can become a trial.
  const trials = call.expects === "proposal" || call.expects === "candidate" ? 1 : 0;
  return { trials, ...callReservation(configurationOf(state), call.role) };
}

/** Whether a call may be asked once more after a round that used this much, its own reservation given back. */
export function hasRoomForRound(state: RunState, call: Reserving & { readonly reservation: Amount }, used: Amount): boolean {
  const again = roundReservation(state, call);
  const grown = (of: keyof Amount): number => used[of] + again[of] - call.reservation[of];
  const wanted = { trials: grown("trials"), costUsd: grown("costUsd"), tokens: grown("tokens"), computeMs: grown("computeMs") };
  return exceeds(state.budget, configurationOf(state).budget, wanted) === null;
}
