import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Promotion } from "../protocol/environment.js";
import type { RecordSet } from "../protocol/measurement.js";
import { type Noise, verdict as verdictSchema } from "../protocol/verdict.js";
import { mean, standardDeviation, studentQuantile } from "./student.js";
import {
  estimateOf,
  noiseFloorVerdict,
  noiseOf,
  orderVerdict,
  type PairedResult,
  pairedVerdict,
  RecordsDifferError,
  smallestConfirmableGain,
} from "./verdict.js";

const level = 0.05;
const steady = { deterministic: true };
const noisy = { deterministic: false };

function records(values: readonly number[], ids: readonly (string | number)[] = values.map((_, index) => index)): RecordSet {
  return { metric: "loss", ids: [...ids], values: [...values] };
}

/** A pair whose leader is 0 everywhere, so that the candidate's values are the differences. */
function pair(seed: number, value: number, recordGains: readonly number[] | null = null): PairedResult {
  const zeros = recordGains?.map(() => 0) ?? null;
  return {
    seed,
    candidate: { value, records: recordGains === null ? null : records(recordGains) },
    leader: { value: 0, records: zeros === null ? null : records(zeros) },
  };
}

function swapped(pairs: readonly PairedResult[]): PairedResult[] {
  return pairs.map(({ seed, candidate, leader }) => ({ seed, candidate: leader, leader: candidate }));
}

describe("Student's quantile", () => {
  it("is the printed table's", () => {
    expect(studentQuantile(0.05, 1)).toBeCloseTo(6.3138, 4);
    expect(studentQuantile(0.05, 2)).toBeCloseTo(2.92, 4);
    expect(studentQuantile(0.025, 10)).toBeCloseTo(2.2281, 4);
    expect(studentQuantile(0.05, 5e7)).toBeCloseTo(1.6449, 4);
  });

  it("refuses what has no quantile", () => {
    expect(() => studentQuantile(0.05, 0)).toThrow(RangeError);
    expect(() => studentQuantile(0.5, 3)).toThrow(RangeError);
    expect(() => studentQuantile(0.05, Number.NaN)).toThrow(RangeError);
  });
});

describe("mean and standard deviation", () => {
  it("of identical values are that value and nothing", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer({ min: 1, max: 40 }), (value, n) => {
        const values = new Array<number>(n).fill(value);
        expect(mean(values) === value).toBe(true);
        expect(standardDeviation(values)).toBe(0);
      }),
    );
  });

  it("stand tiny and huge values", () => {
    expect(standardDeviation([1e-200, 3e-200])).toBeCloseTo(Math.SQRT2 * 1e-200, 210);
    expect(standardDeviation([0, 1e200]) / 1e200).toBeCloseTo(Math.SQRT1_2, 12);
    expect(mean([1.7e308, 1.7e308, -1.7e308])).toBeGreaterThan(5e307);
  });
});

describe("a paired comparison by seeds alone", () => {
  it("is Student's paired test", () => {
    // Differences 1, 2, 3: mean 2, sd 1, error 1/√3, t(2) = 2.91999.
    const verdict = pairedVerdict([pair(1, 1), pair(2, 2), pair(3, 3)], "maximize", level, noisy);
    expect(verdict).toMatchObject({ result: "improved", gain: 2, level, basis: "paired_seeds", seeds: 3, records: 0 });
    expect(verdict.smallestGain).toBeCloseTo(2.919986 / Math.sqrt(3), 5);
    expect(verdict.lower).toBeCloseTo(2 - 1.685854, 5);
    expect(verdict.upper).toBeCloseTo(2 + 1.685854, 5);
  });

  it("reads the direction: less is more when a metric is minimized", () => {
    const pairs = [pair(1, -1), pair(2, -2), pair(3, -3)];
    expect(pairedVerdict(pairs, "minimize", level, noisy).result).toBe("improved");
    expect(pairedVerdict(pairs, "maximize", level, noisy).result).toBe("not_improved");
  });

  it("cannot be known from one pair", () => {
    for (const options of [noisy, steady]) {
      expect(pairedVerdict([pair(1, 5)], "maximize", level, options)).toEqual({
        result: "undecided",
        gain: 5,
        lower: null,
        upper: null,
        level,
        smallestGain: null,
        basis: "paired_seeds",
        seeds: 1,
        records: 0,
      });
    }
  });

  it("of identical values has no width", () => {
    expect(pairedVerdict([pair(1, 0.1), pair(2, 0.1), pair(3, 0.1)], "maximize", level, steady)).toMatchObject({
      result: "improved",
      gain: 0.1,
      lower: 0.1,
      upper: 0.1,
      smallestGain: 0,
    });
    expect(pairedVerdict([pair(1, 0), pair(2, 0)], "maximize", level, steady)).toMatchObject({
      result: "not_improved",
      gain: 0,
      lower: 0,
      upper: 0,
    });
  });

  it("refuses no pairs and values that are no numbers", () => {
    expect(() => pairedVerdict([], "maximize", level, noisy)).toThrow(RangeError);
    expect(() => pairedVerdict([pair(1, Number.NaN), pair(2, 1)], "maximize", level, noisy)).toThrow(RangeError);
  });
});

describe("a paired comparison by records", () => {
  it("of a deterministic recipe is the paired test over records", () => {
    // Differences 1, 2, 3, 4: mean 2.5, variance 5/3, error √(5/12), t(3) = 2.35336.
    const verdict = pairedVerdict([pair(1, 2.5, [1, 2, 3, 4])], "maximize", level, steady);
    expect(verdict).toMatchObject({ result: "improved", gain: 2.5, basis: "paired_records", seeds: 1, records: 4 });
    expect(verdict.smallestGain).toBeCloseTo(2.353363 * Math.sqrt(5 / 12), 5);
  });

  it("is undecided on one seed of a recipe that varies with its seed", () => {
    expect(pairedVerdict([pair(1, 2.5, [1, 2, 3, 4])], "maximize", level, noisy)).toMatchObject({
      result: "undecided",
      lower: null,
      upper: null,
      smallestGain: null,
      records: 4,
    });
  });

  it("has no seed part when fresh seeds repeat the values", () => {
    const once = pairedVerdict([pair(1, 2.5, [1, 2, 3, 4])], "maximize", level, steady);
    const thrice = pairedVerdict(
      [1, 2, 3].map((seed) => pair(seed, 2.5, [1, 2, 3, 4])),
      "maximize",
      level,
      steady,
    );
    expect(thrice.basis).toBe("paired_records");
    expect(thrice.lower).toBeCloseTo(once.lower ?? Number.NaN, 12);
  });

  it("adds both parts, with quantiles weighted by their squared errors", () => {
    // Seed means 1.5 and 2.5: s² = 0.5, /2 = 0.25, ν = 1. Record means 1, 2, 3: s² = 1, /3, ν = 2.
    // Weights 1/4 and 1/3 of 7/12, error √(7/12).
    const verdict = pairedVerdict([pair(1, 1.5, [0.5, 1.5, 2.5]), pair(2, 2.5, [1.5, 2.5, 3.5])], "maximize", level, noisy);
    expect(verdict).toMatchObject({ gain: 2, basis: "paired_seeds_and_records", seeds: 2, records: 3 });
    expect(verdict.smallestGain).toBeCloseTo(
      ((studentQuantile(level, 1) / 4 + studentQuantile(level, 2) / 3) / (7 / 12)) * Math.sqrt(7 / 12),
      10,
    );
  });

  it("pairs by id, not by place, and takes the mean of the records as the metric", () => {
    const straight: PairedResult = {
      seed: 1,
      candidate: { value: 9, records: records([2, 4, 7], ["a", "b", "c"]) },
      leader: { value: 0, records: records([1, 1, 1], ["a", "b", "c"]) },
    };
    const turned: PairedResult = {
      ...straight,
      leader: { value: 0, records: records([1, 1, 1], ["c", "a", "b"]) },
      candidate: { value: 9, records: records([4, 7, 2], ["b", "c", "a"]) },
    };
    const [a, b] = [straight, turned].map((each) => pairedVerdict([each], "maximize", level, steady));
    expect(a?.gain).toBeCloseTo(10 / 3, 12);
    expect(b?.lower).toBeCloseTo(a?.lower ?? Number.NaN, 12);
  });

  it("refuses other ids, another number of records and another metric", () => {
    const with_ =
      (leader: RecordSet): (() => void) =>
      () =>
        void pairedVerdict(
          [{ seed: 1, candidate: { value: 0, records: records([1, 2]) }, leader: { value: 0, records: leader } }],
          "maximize",
          level,
          steady,
        );
    expect(with_(records([1, 2], [0, 7]))).toThrow(RecordsDifferError);
    expect(with_(records([1, 2, 3]))).toThrow(RecordsDifferError);
    expect(with_({ ...records([1, 2]), metric: "other" })).toThrow(RecordsDifferError);
  });

  it("takes a single record, none, or one side alone as no records", () => {
    expect(pairedVerdict([pair(1, 1, [1])], "maximize", level, steady)).toMatchObject({ result: "undecided", records: 0 });
    expect(pairedVerdict([pair(1, 1, [])], "maximize", level, steady)).toMatchObject({ result: "undecided", records: 0 });
    const oneSided: PairedResult = { seed: 1, candidate: { value: 1, records: records([1, 1]) }, leader: { value: 0, records: null } };
    expect(pairedVerdict([oneSided], "maximize", level, steady)).toMatchObject({ result: "undecided", records: 0 });
  });
});

const numbers = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e3, max: 1e3 });
const tables = fc
  .tuple(fc.integer({ min: 2, max: 5 }), fc.integer({ min: 2, max: 6 }))
  .chain(([seeds, count]) => fc.array(fc.array(numbers, { minLength: count, maxLength: count }), { minLength: seeds, maxLength: seeds }));
const comparisons = fc.oneof(
  fc.array(numbers, { minLength: 2, maxLength: 6 }).map((values) => values.map((value, seed) => pair(seed, value))),
  tables.map((rows) => rows.map((row, seed) => pair(seed, mean(row), row))),
);

describe("any paired comparison", () => {
  it("turns its sign and its bounds when the sides are swapped", () => {
    fc.assert(
      fc.property(comparisons, (pairs) => {
        const there = pairedVerdict(pairs, "maximize", level, noisy);
        const back = pairedVerdict(swapped(pairs), "maximize", level, noisy);
        expect(back.gain === -there.gain).toBe(true);
        expect(back.lower === -(there.upper ?? Number.NaN) && back.upper === -(there.lower ?? Number.NaN)).toBe(true);
        expect(back).toMatchObject({ smallestGain: there.smallestGain, basis: there.basis });
        expect(pairedVerdict(pairs, "minimize", level, noisy)).toEqual(back);
      }),
    );
  });

  it("says improved exactly when the whole interval is above zero", () => {
    fc.assert(
      fc.property(comparisons, (pairs) => {
        const { result, lower, upper } = pairedVerdict(pairs, "maximize", level, noisy);
        expect(result).toBe((lower ?? 0) > 0 ? "improved" : (upper ?? 0) <= 0 ? "not_improved" : "undecided");
      }),
    );
  });

  it("is not worse for a candidate that is better everywhere by the same amount", () => {
    const order = { not_improved: 0, undecided: 1, improved: 2 };
    fc.assert(
      fc.property(comparisons, fc.double({ noNaN: true, min: 1e-3, max: 1e3 }), (pairs, shift) => {
        const better = pairs.map((each) => ({
          ...each,
          candidate: {
            value: each.candidate.value + shift,
            records: each.candidate.records && {
              ...each.candidate.records,
              values: each.candidate.records.values.map((value) => value + shift),
            },
          },
        }));
        const [before, after] = [pairs, better].map((each) => pairedVerdict(each, "maximize", level, noisy));
        expect(order[after?.result ?? "not_improved"]).toBeGreaterThanOrEqual(order[before?.result ?? "improved"]);
      }),
    );
  });

  it("asks for more at a stricter level", () => {
    fc.assert(
      fc.property(comparisons, (pairs) => {
        const [loose, strict] = [0.1, 0.01].map((each) => pairedVerdict(pairs, "maximize", each, noisy).smallestGain ?? Number.NaN);
        expect(strict).toBeGreaterThanOrEqual(loose ?? Number.NaN);
      }),
    );
  });

  it("can be written to the ledger, whatever finite values come", () => {
    const wild = fc.double({ noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(wild, wild), { minLength: 1, maxLength: 4 }), (values) => {
        const pairs = values.map(
          ([candidate, leader], seed): PairedResult => ({
            seed,
            candidate: { value: candidate, records: records([candidate, leader]) },
            leader: { value: leader, records: records([leader, candidate]) },
          }),
        );
        expect(verdictSchema.safeParse(pairedVerdict(pairs, "maximize", level, steady)).success).toBe(true);
      }),
    );
  });
});

/** Normal draws from a seed (mulberry32, Box and Muller). */
function normals(seed: number): () => number {
  let state = seed;
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

describe("a candidate that is no better", () => {
  const rounds = 1500;
  /** Three standard deviations of a rate of 5 % over `rounds`. */
  const chance = 0.017;

  function rateOfImproved(seeds: number, count: number, sd: { seed: number; record: number; rest: number }, shift = 0): number {
    const normal = normals(seeds * 1000 + count);
    let improved = 0;
    for (let round = 0; round < rounds; round++) {
      const byRecord = Array.from({ length: count }, () => sd.record * normal());
      const pairs = Array.from({ length: seeds }, (_, seed) => {
        const ofSeed = sd.seed * normal() + shift;
        if (count === 0) return pair(seed, ofSeed);
        const row = byRecord.map((each) => each + ofSeed + sd.rest * normal());
        return pair(seed, mean(row), row);
      });
      if (pairedVerdict(pairs, "maximize", level, noisy).result === "improved") improved += 1;
    }
    return improved / rounds;
  }

  it.each([2, 3, 5, 10])("is called improved at the stated rate on %i seeds without records", (seeds) => {
    const rate = rateOfImproved(seeds, 0, { seed: 1, record: 0, rest: 0 });
    expect(rate).toBeLessThanOrEqual(level + chance);
    expect(rate).toBeGreaterThan(level - chance);
  });

  it.each([
    [3, 8],
    [3, 30],
    [5, 8],
    [5, 30],
    [10, 30],
  ])("is seldom called improved on %i seeds and %i records, whatever the noise is made of", (seeds, count) => {
    for (const sd of [
      { seed: 1, record: 1, rest: 1 },
      { seed: 1, record: 0, rest: 0 },
      { seed: 0, record: 1, rest: 0 },
      { seed: 0, record: 0, rest: 1 },
      { seed: 0.3, record: 1, rest: 0.5 },
    ]) {
      expect(rateOfImproved(seeds, count, sd)).toBeLessThanOrEqual(level + chance);
    }
  });

  it("keeps its level with two seeds too", () => {
    for (const seed of [0.3, 1, 3]) expect(rateOfImproved(2, 30, { seed, record: 1, rest: 0 })).toBeLessThanOrEqual(level + chance);
  });

  it("loses to one that is", () => {
    expect(rateOfImproved(5, 30, { seed: 0.3, record: 1, rest: 0.5 }, 1)).toBeGreaterThan(0.9);
  });
});

function noise(changes: Partial<Noise> = {}): Noise {
  return { n: 4, mean: 1, sd: 0.1, deterministic: false, records: false, smallestGain: null, ...changes };
}

describe("the noise floor", () => {
  // t(3) = 2.353363.
  const floor = 2.353363 * 0.1 * Math.SQRT2;

  it("is t · sd · √2", () => {
    const verdict = noiseFloorVerdict(0.5, noise(), level, null);
    expect(verdict).toMatchObject({ result: "improved", basis: "noise_floor", seeds: 1, records: 0 });
    expect(verdict.smallestGain).toBeCloseTo(floor, 6);
    expect(verdict.lower).toBeCloseTo(0.5 - floor, 6);
    expect(noiseFloorVerdict(0.3, noise(), level, null).result).toBe("undecided");
    expect(noiseFloorVerdict(-0.5, noise(), level, null).result).toBe("not_improved");
  });

  it("and a stated minimum both have to be passed", () => {
    expect(noiseFloorVerdict(0.5, noise(), level, 0.1)).toMatchObject({ result: "improved", basis: "noise_floor" });
    expect(noiseFloorVerdict(0.5, noise(), level, 0.6)).toMatchObject({ result: "undecided", basis: "minimum_gain", smallestGain: 0.6 });
  });

  it("leaves the stated minimum alone where no noise was seen, without an interval", () => {
    for (const quiet of [noise({ sd: 0, deterministic: true }), noise({ n: 1, sd: null })]) {
      expect(noiseFloorVerdict(0.2, quiet, level, 0.1)).toMatchObject({
        result: "improved",
        lower: null,
        upper: null,
        smallestGain: 0.1,
        basis: "minimum_gain",
      });
      expect(noiseFloorVerdict(0.1, quiet, level, 0.1).result).toBe("not_improved");
      expect(noiseFloorVerdict(0, quiet, level, 0).result).toBe("not_improved");
      expect(noiseFloorVerdict(0.2, quiet, level, null)).toMatchObject({
        result: "undecided",
        lower: null,
        upper: null,
        smallestGain: null,
      });
    }
  });

  it("holds its level: seldom passed by a candidate that is no better", () => {
    const normal = normals(5);
    let improved = 0;
    for (let round = 0; round < 2000; round++) {
      const calibrated = noiseOf(Array.from({ length: 4 }, (_, seed) => ({ seed, value: normal() })));
      if (noiseFloorVerdict(normal() - normal(), noise(calibrated), level, null).result === "improved") improved += 1;
    }
    expect(improved / 2000).toBeLessThan(level + 0.015);
    expect(improved / 2000).toBeGreaterThan(level - 0.015);
  });
});

describe("the order alone", () => {
  it("keeps what is better and claims no interval", () => {
    expect(orderVerdict(1e-9, level)).toMatchObject({ result: "improved", lower: null, upper: null, smallestGain: null, basis: "order" });
    expect(orderVerdict(0, level).result).toBe("not_improved");
    expect(orderVerdict(-1, level).result).toBe("not_improved");
  });
});

describe("calibration", () => {
  const repeated = (values: readonly number[]): ReturnType<typeof noiseOf> => noiseOf(values.map((value, seed) => ({ seed, value })));

  it("measures mean and spread", () => {
    expect(repeated([1, 2, 3])).toEqual({ n: 3, mean: 2, sd: 1, deterministic: false });
    expect(repeated([5])).toEqual({ n: 1, mean: 5, sd: null, deterministic: false });
  });

  it("calls a recipe deterministic when different seeds repeat its value exactly", () => {
    expect(repeated(new Array<number>(10).fill(0.1))).toEqual({ n: 10, mean: 0.1, sd: 0, deterministic: true });
    expect(
      noiseOf([
        { seed: 3, value: 1 },
        { seed: 3, value: 1 },
      ]).deterministic,
    ).toBe(false);
  });

  it("averages each metric, and exactly when there is nothing to average", () => {
    expect(
      estimateOf([
        { a: 1, b: 4 },
        { a: 3, b: 4 },
      ]),
    ).toEqual({ a: 2, b: 4 });
    expect(estimateOf(new Array(10).fill({ a: 0.1 }))).toEqual({ a: 0.1 });
    expect(estimateOf([])).toEqual({});
  });
});

describe("the smallest gain that a rule can see", () => {
  const promotion = (changes: Partial<Promotion>): Promotion => ({
    rule: "confirmed",
    confirmations: 3,
    level,
    minimumGain: null,
    ...changes,
  });
  const quiet = noise({ sd: 0, deterministic: true });
  const reference = { baseline: records([0, 0, 0, 0]), reference: records([1, 2, 3, 4]) };

  it("by fresh seeds is t · sd · √2 / √n", () => {
    const gain = smallestConfirmableGain({ noise: noise(), promotion: promotion({}), reference: null });
    expect(gain).toBeCloseTo((2.919986 * 0.1 * Math.SQRT2) / Math.sqrt(3), 6);
  });

  it("under threshold is what the noise floor then asks for", () => {
    for (const minimumGain of [null, 0.1, 0.6]) {
      const rule = promotion({ rule: "threshold", minimumGain });
      expect(smallestConfirmableGain({ noise: noise(), promotion: rule, reference: null })).toBe(
        noiseFloorVerdict(1, noise(), level, minimumGain).smallestGain,
      );
      expect(smallestConfirmableGain({ noise: quiet, promotion: rule, reference: null })).toBe(minimumGain);
    }
  });

  it("of a deterministic recipe comes from a reference row's records", () => {
    for (const rule of ["confirmed", "threshold"] as const) {
      expect(smallestConfirmableGain({ noise: quiet, promotion: promotion({ rule }), reference })).toBeCloseTo(
        2.353363 * Math.sqrt(5 / 12),
        5,
      );
    }
    expect(smallestConfirmableGain({ noise: quiet, promotion: promotion({}), reference: null })).toBeNull();
    const single = { baseline: records([0]), reference: records([1]) };
    expect(smallestConfirmableGain({ noise: quiet, promotion: promotion({}), reference: single })).toBeNull();
  });

  it("grows with records beside seeds, and cannot be told from one pair or under any", () => {
    const seedsAlone = smallestConfirmableGain({ noise: noise(), promotion: promotion({}), reference: null });
    expect(smallestConfirmableGain({ noise: noise(), promotion: promotion({}), reference })).toBeGreaterThan(seedsAlone ?? 0);
    expect(smallestConfirmableGain({ noise: noise(), promotion: promotion({ confirmations: 1 }), reference })).toBeNull();
    expect(smallestConfirmableGain({ noise: noise({ n: 1, sd: null }), promotion: promotion({}), reference })).toBeNull();
    expect(smallestConfirmableGain({ noise: noise(), promotion: promotion({ rule: "any" }), reference })).toBeNull();
  });
});
