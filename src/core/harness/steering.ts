import type { RunState } from "./state.js";

/** What the operator's hand on single trials means for a run. */

/** Whether the operator keeps anything from being built on it, and its own measurements from starting. */
export function isHeld(state: RunState, trial: string): boolean {
  return Object.hasOwn(state.steers, trial) && state.steers[trial]?.steer === "held";
}

/** Trials that the operator wants the next improvements to start from, in the order of their pins. */
export function pinnedTrials(state: RunState): string[] {
  return Object.entries(state.steers).flatMap(([trial, { steer }]) => (steer === "pinned" ? [trial] : []));
}

/** Whether an open trial is held with nothing of it under way: it waits for the operator's word alone. */
export function isParked(state: RunState, trial: string): boolean {
  if (!isHeld(state, trial) || (state.trials[trial]?.pending ?? 0) === 0) return false;
  return !Object.values(state.measurements).some((measurement) => measurement.trial === trial && measurement.running);
}

/** Open trials that come to their end by themselves. */
export function activeTrials(state: RunState): string[] {
  return state.openTrials.filter((trial) => !isParked(state, trial));
}

/** Where a session starts that goes on with nothing: from what is pinned, several in turn, else from the best that may be built on. */
export function freshBase(state: RunState): string {
  const pins = pinnedTrials(state);
  const leader = state.leader?.trial ?? "t0";
  const best = isHeld(state, leader) ? state.keeps.findLast((trial) => !isHeld(state, trial)) : leader;
  return pins[state.counters.session % pins.length] ?? best ?? "t0";
}
