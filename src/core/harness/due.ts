import { exceeds, nothing } from "../protocol/budget.js";
import { externalResearcher } from "../protocol/ids.js";
import { worstCase } from "./decide/measurements.js";
import { activeTime, configurationOf, type OpenMeasurement, type RunState } from "./state.js";
import { activeTrials, isHeld } from "./steering.js";

/** What the runner has to perform now. The same list after a crash: there is no other recovery. */
export type Due =
  | { readonly kind: "call"; readonly call: string; readonly round: number }
  /** A session that this process has to drive; `isStale`: an owner before this one opened it. */
  | { readonly kind: "session"; readonly session: string; readonly isStale: boolean }
  | { readonly kind: "measurement"; readonly measurement: string }
  | { readonly kind: "adjudicate"; readonly trial: string }
  | { readonly kind: "wake_up"; readonly wakeUp: string }
  | { readonly kind: "advance" }
  | { readonly kind: "exhaust"; readonly cap: string }
  | { readonly kind: "conclude" };

/** Cost: proportional to what is open, never to what has been. `now`: milliseconds since 1970. */
export function due(state: RunState, now: number): Due[] {
  if (!isRunning(state)) return [];
  const list: Due[] = [];
  for (const [wakeUp, { dueAtActiveMs }] of Object.entries(state.wakeUps)) {
    if (activeTime(state, now) >= dueAtActiveMs) list.push({ kind: "wake_up", wakeUp });
  }
  for (const call of Object.values(state.calls)) list.push({ kind: "call", call: call.id, round: call.round });
  for (const { id, epoch, researcher } of Object.values(state.sessions)) {
    const isStale = epoch !== state.epoch;
    if (isStale || researcher !== externalResearcher) list.push({ kind: "session", session: id, isStale });
  }
  list.push(...dueMeasurements(state));
  for (const trial of dueVerdicts(state)) list.push({ kind: "adjudicate", trial });
  if (hasRoom(state)) list.push({ kind: "advance" });
  if (
    state.phase === "finishing" &&
    state.openTrials.length === 0 &&
    Object.keys(state.calls).length === 0 &&
    Object.keys(state.sessions).length === 0 &&
    Object.keys(state.measurements).length === 0
  )
    list.push({ kind: "conclude" });
  return list;
}

export function isRunning(state: RunState): boolean {
  return state.phase === "calibrating" || state.phase === "searching" || state.phase === "finishing";
}

/** Whether a run has ended for good, or until somebody extends it: nothing more happens in it. */
export function isOver(phase: RunState["phase"]): boolean {
  return phase === "finished" || phase === "cancelled";
}

/** Milliseconds of active time until the next wake-up; null when none is scheduled. */
export function untilNextWakeUp(state: RunState, now: number): number | null {
  const times = Object.values(state.wakeUps).map((wakeUp) => wakeUp.dueAtActiveMs);
  return times.length === 0 ? null : Math.max(0, Math.min(...times) - activeTime(state, now));
}

function dueMeasurements(state: RunState): Due[] {
  const { parallel, budget, environment } = configurationOf(state);
  const open = Object.values(state.measurements);
  const running = open.filter((measurement) => measurement.running);
  const waiting = open.filter(
    ({ running, trial, reason }) => !running && !isHeld(state, trial) && (reason === "remeasurement" || !isUnchecked(state)),
  );
  const list: Due[] = running.map(dueMeasurement);
  const room = Math.max(0, parallel - running.length);
  if (room === 0 || waiting.length === 0) return list;
  const cap = exceeds(state.budget, budget, worstCase(environment.stages));
  if (cap === null) return [...list, ...waiting.slice(0, room).map(dueMeasurement)];
  // What is in flight settles below its reservation and makes room; where what is spent leaves none, there will be no more.
  const isSpent = exceeds({ ...state.budget, reserved: nothing }, budget, worstCase(environment.stages)) !== null;
  return running.length > 0 || !isSpent ? list : [...list, { kind: "exhaust", cap }];
}

function dueMeasurement(measurement: OpenMeasurement): Due {
  return { kind: "measurement", measurement: measurement.id };
}

function dueVerdicts(state: RunState): string[] {
  return state.openTrials.filter((id) => {
    const trial = state.trials[id];
    if (trial === undefined || trial.pending > 0) return false;
    // The baseline is judged after the reference rows, whose records tell what a confirmation can see.
    return trial.kind !== "baseline" || state.openTrials.length === 1;
  });
}

/** The search waits for one look at a calibration that was taken over: where that fails, nothing was found by it. */
function isUnchecked(state: RunState): boolean {
  return state.phase === "searching" && state.calibrationReused?.checked === false;
}

function hasRoom(state: RunState): boolean {
  if (state.phase !== "searching") return false;
  // A re-measurement of the baseline is no open trial; it counts all the same, or a serial run would not be serial.
  const remeasured = Object.values(state.measurements).filter((measurement) => measurement.reason === "remeasurement").length;
  if (isUnchecked(state)) return remeasured === 0;
  const open = activeTrials(state).length + Object.keys(state.calls).length + remeasured;
  return open < configurationOf(state).parallel;
}
