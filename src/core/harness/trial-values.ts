import type { Metric } from "../protocol/environment.js";
import { gain, primaryMetric } from "../protocol/measurement.js";
import { statusClasses } from "../protocol/status.js";
import type { RunState, Trial } from "./state.js";

/** The metric that decides; null before the run has started. */
export function metricOf(state: RunState): Metric | null {
  return state.configuration === null ? null : primaryMetric(state.configuration.environment);
}

/** A trial's first in-loop value of the metric that decides. */
export function inLoopValue(state: RunState, trial: Trial): number | null {
  const metric = metricOf(state);
  return metric === null ? null : (trial.values?.[metric.name] ?? null);
}

/** The mean of a trial's confirmations. */
export function confirmedValue(state: RunState, trial: Trial): number | null {
  const metric = metricOf(state);
  return metric === null ? null : (trial.estimate?.[metric.name] ?? null);
}

/** The value that counts for a trial: the baseline's calibrated mean, the mean of confirmations where there are any, else the in-loop value. */
export function countedValue(state: RunState, trial: Trial): number | null {
  if (trial.kind === "baseline" && state.noise !== null) return state.noise.mean;
  return confirmedValue(state, trial) ?? inLoopValue(state, trial);
}

/** Gain over the calibrated mean; null before calibration. */
export function gainOverBaseline(state: RunState, value: number | null): number | null {
  const metric = metricOf(state);
  return metric === null || value === null || state.noise === null ? null : gain(metric, value, state.noise.mean);
}

/** A searched trial that ended valid and still stands. */
export function isValidSearch(trial: Trial): boolean {
  return (
    trial.kind === "search" &&
    trial.phase === "ended" &&
    trial.status !== null &&
    statusClasses[trial.status] === "valid" &&
    !trial.retracted
  );
}

/** Whether a searched trial's end counts as a failure: invalid, or broken by the infrastructure; a cancelled one is nobody's. */
export function isFailure(trial: Trial): boolean {
  return (
    trial.kind === "search" &&
    trial.phase === "ended" &&
    trial.status !== null &&
    statusClasses[trial.status] !== "valid" &&
    trial.status !== "cancelled"
  );
}
