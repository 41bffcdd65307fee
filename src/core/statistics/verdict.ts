import type { Promotion } from "../protocol/environment.js";
import { TrialistError } from "../protocol/errors.js";
import type { MetricValues, RecordSet } from "../protocol/measurement.js";
import type { Noise, Verdict } from "../protocol/verdict.js";
import { mean, sampleVariance, studentQuantile } from "./student.js";

/** Two measurements on one seed. Values and records are in the metric's unit. */
export interface PairedResult {
  readonly seed: number;
  readonly candidate: Side;
  readonly leader: Side;
}

interface Side {
  readonly value: number;
  readonly records: RecordSet | null;
}

/** Two measurements that should hold the same records do not. */
export class RecordsDifferError extends TrialistError {
  readonly kind = "evaluator";
}

/** Rule `any`: the order alone decides, and says nothing about noise. */
export function orderVerdict(gain: number, level: number): Verdict {
  return { result: gain > 0 ? "improved" : "not_improved", gain, lower: null, upper: null, level, smallestGain: null, basis: "order", seeds: 1, records: 0 };
}

/**
 * Rule `threshold` with one measurement on each side and no records: the gain must pass what the baseline's own noise
 * would give in a difference of two single measurements, t(n − 1) · sd · √2. Without noise, the stated minimum decides.
 */
export function noiseFloorVerdict(gain: number, noise: Noise, level: number, minimumGain: number | null): Verdict {
  const known = { gain, level, seeds: 1, records: 0 };
  if (noise.sd === null || noise.sd === 0 || noise.n < 2) {
    if (minimumGain === null) return { ...known, result: gain > 0 ? "undecided" : "not_improved", lower: null, upper: null, smallestGain: null, basis: "noise_floor" };
    return { ...known, result: gain > minimumGain ? "improved" : "not_improved", lower: gain - minimumGain, upper: gain + minimumGain, smallestGain: minimumGain, basis: "minimum_gain" };
  }
  const margin = Math.max(studentQuantile(level, noise.n - 1) * noise.sd * Math.SQRT2, minimumGain ?? 0);
  return { ...known, ...interval(gain, margin), smallestGain: margin, basis: "noise_floor" };
}

/**
 * Candidate against leader on the same seeds and, where there are records, on the same records.
 *
 * The difference d[s, r] is a two-way table of seeds and records. Its mean is the estimate; its variance is taken as
 * var over records of the seed means / R + var over seeds of the record means / S. Both terms hold the interaction, so
 * the sum is never too small (the random-effects decomposition of a two-way layout without replication). Degrees of
 * freedom by Satterthwaite (1946), "An approximate distribution of estimates of variance components", formula (17).
 */
export function pairedVerdict(pairs: readonly PairedResult[], direction: "minimize" | "maximize", level: number, options: { readonly deterministic: boolean }): Verdict {
  const sign = direction === "maximize" ? 1 : -1;
  const seedGains = pairs.map((pair) => sign * (pair.candidate.value - pair.leader.value));
  const recordGains = recordMeans(pairs, sign);
  const gain = mean(seedGains);
  const known = { gain, level, seeds: pairs.length, records: recordGains?.length ?? 0 };
  const seedVariance = sampleVariance(seedGains);
  const seedsVary = pairs.length > 1 && seedVariance > 0;
  const basis: Verdict["basis"] = recordGains === null ? "paired_seeds" : seedsVary ? "paired_seeds_and_records" : "paired_records";
  // One seed of a recipe that varies with its seed says nothing about the next seed.
  const blind = recordGains === null ? pairs.length < 2 : pairs.length < 2 && !options.deterministic;
  if (blind) return { ...known, result: gain > 0 ? "undecided" : "not_improved", lower: null, upper: null, smallestGain: null, basis };
  const terms: VarianceTerm[] = [];
  if (recordGains !== null && recordGains.length > 1) terms.push({ variance: sampleVariance(recordGains) / recordGains.length, degrees: recordGains.length - 1 });
  if (pairs.length > 1) terms.push({ variance: seedVariance / pairs.length, degrees: pairs.length - 1 });
  const margin = marginOf(terms, level);
  return { ...known, ...interval(gain, margin), smallestGain: margin, basis };
}

interface VarianceTerm {
  readonly variance: number;
  readonly degrees: number;
}

function marginOf(terms: readonly VarianceTerm[], level: number): number {
  const total = terms.reduce((sum, term) => sum + term.variance, 0);
  if (total === 0) return 0;
  const degrees = total ** 2 / terms.reduce((sum, term) => sum + term.variance ** 2 / term.degrees, 0);
  return studentQuantile(level, Math.max(1, degrees)) * Math.sqrt(total);
}

function interval(gain: number, margin: number): Pick<Verdict, "result" | "lower" | "upper"> {
  const [lower, upper] = [gain - margin, gain + margin];
  return { result: lower > 0 ? "improved" : upper <= 0 ? "not_improved" : "undecided", lower, upper };
}

/** Mean gain of each record over the seeds, in the order of the first measurement's ids; null without records. */
function recordMeans(pairs: readonly PairedResult[], sign: number): number[] | null {
  const first = pairs[0]?.candidate.records;
  if (first == null || pairs.some((pair) => pair.candidate.records === null || pair.leader.records === null)) return null;
  const sums = new Map<string, number>(first.ids.map((id) => [String(id), 0]));
  for (const pair of pairs) {
    addTo(sums, pair.candidate.records, sign / pairs.length);
    addTo(sums, pair.leader.records, -sign / pairs.length);
  }
  return [...sums.values()];
}

function addTo(sums: Map<string, number>, records: RecordSet | null, weight: number): void {
  if (records === null) return;
  if (records.ids.length !== sums.size) throw new RecordsDifferError({ expected: `${sums.size} records`, found: `${records.ids.length}`, where: "paired comparison", todo: "The evaluator must score the same records every time." });
  records.ids.forEach((id, index) => {
    const key = String(id);
    const sum = sums.get(key);
    if (sum === undefined) throw new RecordsDifferError({ expected: "the same record ids in both measurements", found: `the id ${key} in one alone`, where: "paired comparison", todo: "The evaluator must score the same records every time." });
    sums.set(key, sum + weight * (records.values[index] ?? 0));
  });
}

/** Noise of repetitions. `deterministic`: at least two seeds, all values identical. */
export function noiseOf(values: readonly { readonly seed: number; readonly value: number }[]): { mean: number; sd: number | null; deterministic: boolean } {
  const numbers = values.map(({ value }) => value);
  const seeds = new Set(values.map(({ seed }) => seed)).size;
  const variance = sampleVariance(numbers);
  return { mean: mean(numbers), sd: numbers.length < 2 ? null : Math.sqrt(variance), deterministic: seeds > 1 && variance === 0 };
}

/** Mean of each metric. */
export function estimateOf(results: readonly MetricValues[]): MetricValues {
  const names = Object.keys(results[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, mean(results.map((values) => values[name] ?? Number.NaN))]));
}

/**
 * The smallest gain that the rule in force can see, as calibration can tell; null when only a first comparison will.
 * With seeds: t · sd · √2 / √pairs, as if a candidate were as noisy as the baseline. With records: the margin between
 * the baseline and a reference row, as if a candidate differed from its leader as these two do.
 */
export function smallestConfirmableGain(known: {
  readonly noise: { readonly sd: number | null; readonly deterministic: boolean };
  readonly promotion: Promotion;
  readonly reference: { readonly baseline: RecordSet; readonly reference: RecordSet } | null;
}): number | null {
  const { noise, promotion, reference } = known;
  const pairs = promotion.rule === "confirmed" ? promotion.confirmations : 1;
  if (promotion.rule === "any") return null;
  const terms: VarianceTerm[] = [];
  if (reference !== null) {
    const side = (records: RecordSet): Side => ({ value: mean(records.values), records });
    const verdict = pairedVerdict([{ seed: 0, candidate: side(reference.reference), leader: side(reference.baseline) }], "minimize", promotion.level, { deterministic: true });
    if (verdict.smallestGain !== null) terms.push({ variance: (verdict.smallestGain / studentQuantile(promotion.level, verdict.records - 1)) ** 2, degrees: verdict.records - 1 });
  }
  if (noise.sd !== null && noise.sd > 0 && pairs > 1) terms.push({ variance: (2 * noise.sd ** 2) / pairs, degrees: pairs - 1 });
  if (terms.length === 0) return promotion.minimumGain;
  return Math.max(marginOf(terms, promotion.level), promotion.minimumGain ?? 0);
}
