import { configurationOf, type RunState, type Trial } from "../../core/harness/state.js";
import { primaryMetric, type RecordSet } from "../../core/protocol/measurement.js";
import { type ErrorTerm, errorOfMean, marginOf, mean } from "../../core/statistics/student.js";
import { type ReadBlob, recordsFor } from "./evidence.js";

/**
 * Interval of a trial's own value, in the metric's unit, at 1 − 2·level: how far the mean of its confirmations (of its
 * calibrations, for the baseline) may lie from what seeds without end would give, and, with `blob`, from what other
 * records of the same kind would give. The first measurement, which selected the trial, never enters.
 *
 * Null when there is nothing to estimate it from: no confirmations, or one alone, or seeds that change nothing and no
 * per-record results. It says nothing of the gain: for that, paired differences are narrower and are in the verdict.
 */
export function valueInterval(state: RunState, trial: Trial, blob?: ReadBlob): [number, number] | null {
  const { environment, promotion } = configurationOf(state);
  const metric = primaryMetric(environment).name;
  const results = ownResults(trial);
  const values = results.map((result) => result.values[metric]).filter((value) => value !== undefined);
  if (values.length === 0) return null;
  // Repetitions that agree to the last digit say that seeds change nothing, not that the value is exact.
  const seeds = values.some((value) => value !== values[0]) ? errorOfMean(values) : null;
  const records = blob === undefined ? null : recordPart(results, metric, blob);
  const parts = [seeds, records].filter((part) => part !== null);
  // A single repetition of what may vary leaves the seeds' share unknown: an interval without it would be too narrow.
  const seedsUnknown = values.length < 2 && state.noise?.deterministic !== true;
  if (parts.length === 0 || seedsUnknown) return null;
  const half = marginOf(parts, promotion.level);
  const centre = mean(values);
  return [centre - half, centre + half];
}

function ownResults(trial: Trial): Trial["results"] {
  if (trial.kind === "baseline") return trial.results.filter((result) => result.reason === "calibration");
  return trial.results.filter((result) => result.reason === "confirmation" && result.round === trial.confirmation?.round);
}

/** Over records: each record's mean over the repetitions, so that seeds are not counted as data. */
function recordPart(results: Trial["results"], metric: string, blob: ReadBlob): ErrorTerm | null {
  const sums = new Map<string | number, { total: number; n: number }>();
  for (const digest of new Set(results.map((result) => result.records?.blob))) {
    const set: RecordSet | null = digest === undefined ? null : recordsFor(blob, digest);
    if (set === null || set.metric !== metric) return null;
    set.ids.forEach((id, index) => {
      const sum = sums.get(id) ?? { total: 0, n: 0 };
      sums.set(id, { total: sum.total + (set.values[index] ?? 0), n: sum.n + 1 });
    });
  }
  return sums.size < 2 ? null : errorOfMean([...sums.values()].map((sum) => sum.total / sum.n));
}
