import { TrialistError } from "../protocol/errors.js";
import type { RecordSet } from "../protocol/measurement.js";
import { mean } from "./student.js";

/** Two measurements on one seed. Values and records are in the metric's unit; seeds of several pairs differ. */
export interface PairedResult {
  readonly seed: number;
  readonly candidate: PairedSide;
  readonly leader: PairedSide;
}

export interface PairedSide {
  readonly value: number;
  /** Per-record results whose mean is `value`. */
  readonly records: RecordSet | null;
}

export type Direction = "minimize" | "maximize";

/** Two measurements that should hold the same records do not. */
export class RecordsDifferError extends TrialistError {
  readonly kind = "evaluator";
}

/** Differences beyond this are cut, so that no later sum of two leaves the range of numbers. */
const largestGain = Number.MAX_VALUE / 4;

/** Gain of the candidate: positive is better. @throws RangeError for a value that is not finite */
export function gainOf(candidate: number, leader: number, direction: Direction): number {
  if (!Number.isFinite(candidate) || !Number.isFinite(leader))
    throw new RangeError(`finite values were expected, ${candidate} and ${leader} were given`);
  const gain = direction === "maximize" ? candidate - leader : leader - candidate;
  return Math.max(-largestGain, Math.min(largestGain, gain));
}

/** The two margins of the table of gains, by seed (rows) and record (columns). */
export interface RecordGains {
  /** Mean over records, by pair. */
  readonly bySeed: readonly number[];
  /** Mean over pairs, by record. */
  readonly byRecord: readonly number[];
}

/**
 * Pairs every record by id. Null when a measurement has no records, or one alone, which tells nothing of the next.
 * @throws RecordsDifferError when two measurements hold different ids or metrics
 */
export function recordGains(pairs: readonly PairedResult[], direction: Direction): RecordGains | null {
  const first = pairs[0]?.candidate.records;
  if (first == null || first.ids.length < 2) return null;
  const sums = new Array<number>(first.ids.length).fill(0);
  const bySeed: number[] = [];
  for (const { candidate, leader } of pairs) {
    if (candidate.records === null || leader.records === null) return null;
    const [mine, theirs] = [inOrderOf(first, candidate.records), inOrderOf(first, leader.records)];
    const gains = mine.map((value, index) => gainOf(value, theirs[index] ?? Number.NaN, direction));
    bySeed.push(mean(gains));
    gains.forEach((gain, index) => {
      sums[index] = (sums[index] ?? 0) + gain / pairs.length;
    });
  }
  return { bySeed, byRecord: sums };
}

/** The values of `records`, ordered as the ids of `first`. */
function inOrderOf(first: RecordSet, records: RecordSet): readonly number[] {
  const differ = (expected: string, found: string): RecordsDifferError =>
    new RecordsDifferError({ expected, found, where: "paired comparison", todo: "The evaluator must score the same records every time." });
  if (records.metric !== first.metric) throw differ(`records of ${first.metric}`, `records of ${records.metric}`);
  if (records.ids.length !== first.ids.length) throw differ(`${first.ids.length} records`, `${records.ids.length}`);
  if (records.ids.every((id, index) => id === first.ids[index])) return records.values;
  const byId = new Map(records.ids.map((id, index) => [String(id), records.values[index] ?? Number.NaN]));
  return first.ids.map((id) => {
    const value = byId.get(String(id));
    if (value === undefined) throw differ("the same record ids in both measurements", `the id ${String(id)} in one alone`);
    return value;
  });
}
