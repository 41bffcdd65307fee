import { primaryMetric, type RecordSet } from "../../core/protocol/measurement.js";
import { configurationOf, type RunState, type Trial } from "../../core/harness/state.js";
import { type ReadBlob, recordsFor } from "./evidence.js";

interface Part {
  readonly variance: number;
  readonly freedom: number;
}

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
  const seeds = state.noise?.deterministic === true ? null : partOf(values);
  const records = blob === undefined ? null : recordPart(results, metric, blob);
  const parts = [seeds, records].filter((part) => part !== null);
  // A single stochastic repetition leaves the seeds' share unknown, and an interval without it would be too narrow.
  if (parts.length === 0 || (seeds === null && state.noise?.deterministic !== true)) return null;
  const half = halfWidth(parts, promotion.level);
  const centre = meanOf(values);
  return [centre - half, centre + half];
}

function ownResults(trial: Trial): Trial["results"] {
  if (trial.kind === "baseline") return trial.results.filter((result) => result.reason === "calibration");
  return trial.results.filter((result) => result.reason === "confirmation" && result.round === trial.confirmation?.round);
}

/** Over records: each record's mean over the repetitions, so that seeds are not counted as data. */
function recordPart(results: Trial["results"], metric: string, blob: ReadBlob): Part | null {
  const sums = new Map<string | number, { total: number; n: number }>();
  for (const digest of new Set(results.map((result) => result.records?.blob))) {
    const set: RecordSet | null = digest === undefined ? null : recordsFor(blob, digest);
    if (set === null || set.metric !== metric) return null;
    set.ids.forEach((id, index) => {
      const sum = sums.get(id) ?? { total: 0, n: 0 };
      sums.set(id, { total: sum.total + (set.values[index] ?? 0), n: sum.n + 1 });
    });
  }
  return partOf([...sums.values()].map((sum) => sum.total / sum.n));
}

function partOf(values: readonly number[]): Part | null {
  if (values.length < 2) return null;
  const mean = meanOf(values);
  const squares = values.reduce((total, value) => total + (value - mean) ** 2, 0);
  return { variance: squares / (values.length - 1) / values.length, freedom: values.length - 1 };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}

/** Welch's and Satterthwaite's degrees of freedom for the sum of the parts, rounded down, which widens. */
function halfWidth(parts: readonly Part[], level: number): number {
  const variance = parts.reduce((total, part) => total + part.variance, 0);
  if (variance === 0) return 0;
  const freedom = variance ** 2 / parts.reduce((total, part) => total + part.variance ** 2 / part.freedom, 0);
  return studentQuantile(1 - level, Math.max(1, Math.floor(freedom + 1e-9))) * Math.sqrt(variance);
}

/** Student's quantile for p > 0.5, by bisection; beyond 400 degrees of freedom, that of 400, which is a hair wider. */
export function studentQuantile(p: number, freedom: number): number {
  let [low, high] = [0, 1e6];
  for (let step = 0; step < 200 && high - low > 1e-12 * high; step++) {
    const middle = (low + high) / 2;
    if ((1 + withinStudent(middle, Math.min(freedom, 400))) / 2 < p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** P(|T| ≤ t) for whole degrees of freedom: the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4. */
function withinStudent(t: number, freedom: number): number {
  const angle = Math.atan(t / Math.sqrt(freedom));
  const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
  const odd = freedom % 2 === 1;
  let [term, sum] = odd ? [cosine, 0] : [1, 0];
  for (let k = odd ? 1 : 0; k <= freedom - 2; k += 2) {
    sum += term;
    term *= ((k + 1) / (k + 2)) * cosine ** 2;
  }
  return odd ? (2 / Math.PI) * (angle + sine * sum) : sine * sum;
}
