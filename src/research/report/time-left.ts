import { isOver } from "../../core/harness/due.js";
import { activeTime, type RunState } from "../../core/harness/state.js";

/** Ended trials from which on the run's own pace says more than its calibration. */
const enoughTrials = 3;

/**
 * Estimate of the active time until a cap is reached: trials left at the pace so far (calibration set aside), or at the
 * calibrated pipeline's pace before there is one; never more than the wall cap leaves. 0 once the run is over, null
 * when nothing bounds it or nothing is known. Its cost does not grow with the run.
 */
export function timeLeft(state: RunState, now: number): number | null {
  const { configuration } = state;
  if (isOver(state.phase)) return 0;
  if (configuration === null) return null;
  const { trials, wallMs } = configuration.budget;
  const byWall = wallMs === null ? null : Math.max(0, wallMs - activeTime(state, now));
  const each = msPerTrial(state, now);
  const left = state.phase === "finishing" ? openSearches(state) : trials === null ? null : Math.max(0, trials - state.searchTrialsEnded);
  const byTrials = left === null || each === null ? null : left * each;
  if (byTrials === null) return byWall;
  return byWall === null ? byTrials : Math.min(byWall, byTrials);
}

/** Active milliseconds of the run per searched trial, trials in parallel included. */
function msPerTrial(state: RunState, now: number): number | null {
  if (state.searchTrialsEnded >= enoughTrials) {
    return Math.max(0, activeTime(state, now) - calibrationMs(state)) / state.searchTrialsEnded;
  }
  const parallel = state.configuration?.parallel ?? 1;
  return state.pipelineWallMs > 0 ? (state.pipelineWallMs * passesPerTrial(state)) / parallel : null;
}

/** Of the pipeline, as far as it is known beforehand: whether a trial will be confirmed is known under rule `compare` alone. */
function passesPerTrial({ configuration }: RunState): number {
  return configuration?.promotion.rule === "compare" ? 1 + 2 * configuration.promotion.confirmations : 1;
}

/** Stage time of the baseline and the references, which ran before the search, as if spread over all slots. */
function calibrationMs(state: RunState): number {
  let total = state.calibrationReused === null ? (state.trials["t0"]?.wallMs ?? 0) : 0;
  for (let number = 1; number <= state.counters.reference; number++) total += state.trials[`r${number}`]?.wallMs ?? 0;
  return total / Math.max(1, state.configuration?.parallel ?? 1);
}

function openSearches(state: RunState): number {
  return state.openTrials.filter((id) => state.trials[id]?.kind === "search").length;
}
