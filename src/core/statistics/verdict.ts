import type { Promotion } from "../protocol/environment.js";
import type { MetricValues, RecordSet } from "../protocol/measurement.js";
import type { Noise, Verdict } from "../protocol/verdict.js";
import { type Direction, gainOf, type PairedResult, type PairedSide, recordGains } from "./paired.js";
import { type ErrorTerm, errorOfMean, marginOf, mean, standardDeviation, studentQuantile } from "./student.js";

export { type PairedResult, RecordsDifferError } from "./paired.js";

/** Rule `any`: the order alone decides, and says nothing about noise. */
export function orderVerdict(gain: number, level: number): Verdict {
  return { ...unknownBounds, result: gain > 0 ? "improved" : "not_improved", gain, level, basis: "order", seeds: 1, records: 0 };
}

/**
 * Rule `threshold` with one measurement on each side and no records: the gain must pass what the baseline's own noise
 * gives in a difference of two single measurements, t(n − 1) · sd · √2, and the stated minimum where there is one. Where
 * the noise is not known, the minimum alone decides, and there is nothing to build an interval on.
 */
export function noiseFloorVerdict(gain: number, noise: Noise, level: number, minimumGain: number | null): Verdict {
  const known = { gain, level, seeds: 1, records: 0 };
  const floor = noiseFloor(noise, level);
  if (floor === null && minimumGain === null) return undecided({ ...known, basis: "noise_floor" });
  if (floor === null || floor < (minimumGain ?? 0)) return minimumGainVerdict({ ...known, basis: "minimum_gain" }, floor, minimumGain ?? 0);
  return decided({ ...known, basis: "noise_floor" }, floor);
}

function minimumGainVerdict(known: Known, floor: number | null, minimumGain: number): Verdict {
  // Wider than the noise asks for, so the bounds hold at their level, and more.
  if (floor !== null) return decided(known, minimumGain);
  return { ...known, ...unknownBounds, result: known.gain > minimumGain ? "improved" : "not_improved", smallestGain: minimumGain };
}

/** What one difference of two single measurements shows by noise alone; null where calibration saw no noise. */
function noiseFloor(noise: Pick<Noise, "sd"> & { readonly n?: number }, level: number): number | null {
  if (noise.sd === null || noise.sd === 0 || noise.n === undefined || noise.n < 2) return null;
  return studentQuantile(level, noise.n - 1) * noise.sd * Math.SQRT2;
}

/**
 * Candidate against leader on the same seeds and, where there are records, on the same records.
 *
 * The gains form a two-way table of seeds × records; their grand mean is the estimate. Its variance is taken as
 * s²(record means) / R + s²(seed means) / S. In the random-effects model of a crossed table (Scheffé, "The Analysis of
 * Variance", 1959, chapter 7) these expect σ²ᵣ / R + σ²ₑ / RS and σ²ₛ / S + σ²ₑ / RS, so that their sum exceeds the true
 * variance by σ²ₑ / RS and is never too small on average. Interval by `marginOf`.
 *
 * A coarse metric whose few seeds agree by chance has no seed part at all; more confirmations mend that.
 * @throws RecordsDifferError when two measurements hold different records
 */
export function pairedVerdict(
  pairs: readonly PairedResult[],
  direction: Direction,
  level: number,
  options: { readonly deterministic: boolean },
): Verdict {
  const { known, terms } = pairedEstimate(pairs, direction, options);
  return terms === null ? undecided({ ...known, level }) : decided({ ...known, level }, marginOf(terms, level));
}

/** A paired comparison before a level is chosen: the estimated gain, and the parts of its error; null where nothing tells them. */
export function pairedEstimate(
  pairs: readonly PairedResult[],
  direction: Direction,
  options: { readonly deterministic: boolean },
): { readonly known: Omit<Known, "level">; readonly terms: readonly ErrorTerm[] | null } {
  if (pairs.length === 0) throw new RangeError("a comparison needs at least one pair of measurements");
  const table = recordGains(pairs, direction);
  const bySeed = table?.bySeed ?? pairs.map((pair) => gainOf(pair.candidate.value, pair.leader.value, direction));
  const terms: ErrorTerm[] = [];
  if (table !== null) terms.push(errorOfMean(table.byRecord));
  const seeds = bySeed.length > 1 ? errorOfMean(bySeed) : null;
  if (seeds !== null) terms.push(seeds);
  const known = {
    gain: mean(bySeed),
    seeds: pairs.length,
    records: table?.byRecord.length ?? 0,
    basis: table === null ? "paired_seeds" : seeds !== null && seeds.standardError > 0 ? "paired_seeds_and_records" : "paired_records",
  } as const;
  // One seed says nothing about the next, unless there is nothing to say and records carry the interval.
  return { known, terms: seeds === null && (table === null || !options.deterministic) ? null : terms };
}

type Known = Pick<Verdict, "gain" | "level" | "seeds" | "records" | "basis">;

const unknownBounds = { lower: null, upper: null, smallestGain: null } as const;

function undecided(known: Known): Verdict {
  return { ...known, ...unknownBounds, result: "undecided" };
}

function decided(known: Known, margin: number): Verdict {
  const [lower, upper] = [known.gain - margin, known.gain + margin];
  if (!Number.isFinite(lower) || !Number.isFinite(upper)) return undecided(known);
  return { ...known, result: lower > 0 ? "improved" : upper <= 0 ? "not_improved" : "undecided", lower, upper, smallestGain: margin };
}

/** Noise of repetitions. `deterministic`: at least two seeds, all values identical. `n`: how many there were. */
export function noiseOf(
  values: readonly { readonly seed: number; readonly value: number }[],
): Pick<Noise, "mean" | "sd" | "deterministic"> & { n?: number } {
  const numbers = values.map(({ value }) => value);
  const seeds = new Set(values.map(({ seed }) => seed)).size;
  const sd = numbers.length < 2 ? null : standardDeviation(numbers);
  return { n: numbers.length, mean: mean(numbers), sd, deterministic: seeds > 1 && sd === 0 };
}

/** Mean of each metric. */
export function estimateOf(results: readonly MetricValues[]): MetricValues {
  const names = Object.keys(results[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, mean(results.map((values) => values[name] ?? Number.NaN))]));
}

/**
 * The smallest gain that the rule in force can see, as calibration can tell; null when only a first comparison will.
 * By seeds: t(n − 1) · sd · √2, over √n for the n pairs of a confirmation, as if a candidate were as noisy as the
 * baseline. By records: the error between the baseline and a reference row, as if a candidate differed from its leader
 * as these two do.
 */
export function smallestConfirmableGain(known: {
  readonly noise: Pick<Noise, "sd" | "deterministic"> & { readonly n?: number };
  readonly promotion: Promotion;
  readonly reference: { readonly baseline: RecordSet; readonly reference: RecordSet } | null;
}): number | null {
  const { noise, promotion, reference } = known;
  if (promotion.rule === "any") return null;
  const byRecords = reference === null ? null : recordError(reference.baseline, reference.reference);
  if (noise.deterministic && byRecords !== null) return marginOf([byRecords], promotion.level);
  if (promotion.rule === "threshold") {
    const floor = noiseFloor(noise, promotion.level);
    return floor === null ? promotion.minimumGain : Math.max(floor, promotion.minimumGain ?? 0);
  }
  const pairs = promotion.confirmations;
  if (noise.sd === null || noise.sd === 0 || pairs < 2) return null;
  const bySeeds: ErrorTerm = { standardError: (noise.sd * Math.SQRT2) / Math.sqrt(pairs), degreesOfFreedom: pairs - 1 };
  return marginOf(byRecords === null ? [bySeeds] : [byRecords, bySeeds], promotion.level);
}

function recordError(baseline: RecordSet, reference: RecordSet): ErrorTerm | null {
  const side = (records: RecordSet): PairedSide => ({ value: 0, records });
  const gains = recordGains([{ seed: 0, candidate: side(reference), leader: side(baseline) }], "maximize");
  return gains === null ? null : errorOfMean(gains.byRecord);
}
