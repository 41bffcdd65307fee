import { configurationOf, type RunState, type TrialResult, trialOf } from "../../core/harness/state.js";
import type { GateSource } from "../../core/protocol/gate.js";
import type { BlobReference } from "../../core/protocol/ids.js";
import { gain, primaryMetric, type RecordSet } from "../../core/protocol/measurement.js";
import { centred, type Differences, type Gains, type Look } from "../../core/statistics/gate-error.js";
import { generatorOf, placeIn } from "../../core/statistics/generator.js";
import { recordGains } from "../../core/statistics/paired.js";
import { mean } from "../../core/statistics/student.js";
import { validCopies } from "./copies.js";

/** Where per-record results lie. */
export type ReadRecords = (reference: BlobReference) => RecordSet;

/** Differences of equals, and what they are. */
export interface Source {
  readonly from: GateSource;
  readonly records: number;
  readonly differences: Differences;
}

/** More values on different seeds than these make no other picture. */
const mostValues = 200;

/** Differences by record, where a run of copies has records at all. */
export function recordSource(state: RunState, read: ReadRecords): Source | null {
  const { environment } = configurationOf(state);
  const metric = primaryMetric(environment);
  const load = (reference: BlobReference | null): RecordSet | null => {
    const set = reference === null ? null : read(reference);
    return set?.metric === metric.name && set.ids.length > 1 ? set : null;
  };
  const between = (a: RecordSet, b: RecordSet): Gains =>
    recordGains([{ seed: 0, candidate: { value: 0, records: a }, leader: { value: 0, records: b } }], metric.direction)?.byRecord ?? [];
  const sets = repetitions(state).map(({ records }) => load(records));
  const known = sets.filter((set) => set !== null);
  const [baseline] = known;
  if (baseline === undefined || known.length < sets.length) return null;
  if (state.noise?.deterministic !== true) return known.length < 2 ? null : betweenSeeds(known, between);
  const reference = Object.values(state.trials)
    .filter(({ kind }) => kind === "reference")
    .map(({ records }) => load(records))
    .find((set) => set !== null);
  if (reference === undefined) return null;
  const column = centred([between(reference, baseline)]);
  return { from: "reference", records: baseline.ids.length, differences: { firsts: column, pairs: column } };
}

function betweenSeeds(sets: readonly RecordSet[], between: (a: RecordSet, b: RecordSet) => Gains): Source {
  const rows = sets.map((a) => sets.map((b) => between(a, b)));
  return {
    from: "repetitions",
    records: sets[0]?.ids.length ?? 0,
    // Against the leader's mean over all repetitions, as a first measurement is; a pair is two single measurements.
    differences: { firsts: rows.map(meanByRecord), pairs: rows.flatMap((row, a) => row.filter((_, b) => a !== b)) },
  };
}

function meanByRecord(rows: readonly Gains[]): Gains {
  return (rows[0] ?? []).map((_, record) => mean(rows.map((row) => row[record] ?? Number.NaN)));
}

/** Differences of single values of the baseline on different seeds: a candidate whose noise has nothing to do with its leader's. */
export function seedSource(state: RunState): Source | null {
  const metric = primaryMetric(configurationOf(state).environment);
  const bySeed = new Map<number, number>();
  const results = [...trialOf(state, "t0").results, ...validCopies(state).flatMap((copy) => copy.results)];
  for (const { seed, values } of results) bySeed.set(seed, values[metric.name] ?? Number.NaN);
  const values = [...bySeed.values()].filter(Number.isFinite).slice(0, mostValues);
  if (values.every((value) => value === values[0])) return null;
  const centre = mean(values);
  return {
    from: "seeds",
    records: 0,
    differences: {
      firsts: values.map((value) => [gain(metric, value, centre)]),
      pairs: values.flatMap((a, place) => values.filter((_, other) => other !== place).map((b) => [gain(metric, a, b)])),
    },
  };
}

/**
 * The copies as they were measured: each one's first measurement, and its own pairs where it was confirmed. One that was not
 * gets pairs of others, either way round, since both sides are copies. Null where the rule wants pairs and there are none.
 */
export function copyLooks(state: RunState, seed: number): Look[] | null {
  const { environment, promotion } = configurationOf(state);
  const metric = primaryMetric(environment);
  const leader = trialOf(state, "t0").estimate?.[metric.name] ?? Number.NaN;
  const copies = validCopies(state).map((copy) => ({
    first: gain(metric, copy.values?.[metric.name] ?? Number.NaN, leader),
    pairs: pairsOf(copy.results, (result) => result.values[metric.name] ?? Number.NaN).map(([mine, theirs]) => gain(metric, mine, theirs)),
  }));
  const pool = copies.flatMap(({ pairs }) => pairs);
  const wanted = promotion.rule === "confirmed" ? promotion.confirmations : 0;
  if (copies.length === 0 || (wanted > 0 && pool.length < 2)) return null;
  const uniform = generatorOf(seed);
  const drawn = (): number => (pool[placeIn(pool.length, uniform)] ?? 0) * (uniform() < 0.5 ? -1 : 1);
  return copies.map(({ first, pairs }) => ({
    first: [first],
    pairs: (pairs.length >= wanted ? pairs.slice(0, wanted) : Array.from({ length: wanted }, drawn)).map((each) => [each]),
  }));
}

/** Candidate and leader of each pair of the last round. */
function pairsOf(results: readonly TrialResult[], read: (result: TrialResult) => number): [number, number][] {
  const round = Math.max(0, ...results.map((result) => result.round));
  const side = (reason: TrialResult["reason"]): TrialResult[] => results.filter((each) => each.round === round && each.reason === reason);
  const leaders = side("confirmation_of_leader");
  return side("confirmation").flatMap((mine) => {
    const partner = leaders.find(({ pair }) => pair === mine.pair);
    return partner === undefined ? [] : [[read(mine), read(partner)] satisfies [number, number]];
  });
}

function repetitions(state: RunState): TrialResult[] {
  return trialOf(state, "t0").results.filter(({ reason }) => reason === "calibration");
}
