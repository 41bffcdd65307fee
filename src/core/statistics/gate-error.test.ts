import { describe, expect, it } from "vitest";
import type { Promotion } from "../protocol/environment.js";
import type { Noise } from "../protocol/verdict.js";
import { centred, type Differences, drawnLooks, drawsFor, type Gains, type GateRule, judgeLook, keptAmong } from "./gate-error.js";
import { generatorOf } from "./generator.js";
import { mean, standardDeviation } from "./student.js";

const uniform = generatorOf(5);
const normal = (): number => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
const normals = (n: number): number[] => Array.from({ length: n }, normal);

function ruleOf(changes: Partial<Promotion> = {}, noise: Partial<Noise> = {}): GateRule {
  return {
    promotion: { rule: "confirmed", confirmations: 2, level: 0.05, minimumGain: null, ...changes },
    noise: { n: 5, mean: 0, sd: 1, deterministic: false, records: false, smallestGain: null, ...noise },
  };
}

/** One real difference between two recipes, record by record. */
function byRecord(records: number): Differences {
  const column = centred([normals(records)]);
  return { firsts: column, pairs: column };
}

/** Differences between single values of many seeds. */
function bySeed(seeds: number): Differences {
  const values = normals(seeds);
  const centre = mean(values);
  return {
    firsts: values.map((value) => [value - centre]),
    pairs: values.flatMap((a, place) => values.filter((_, other) => other !== place).map((b) => [a - b])),
  };
}

describe("what a rule makes of one candidate", () => {
  it("goes by its first measurement, then by the pairs of its confirmation", () => {
    const pairs: Gains[] = [[1], [1.1], [0.9]];
    expect(judgeLook({ first: [-0.1], pairs }, 0, ruleOf())).toEqual({ confirmed: false, kept: false });
    expect(judgeLook({ first: [0.1], pairs }, 0, ruleOf())).toEqual({ confirmed: true, kept: true });
    expect(judgeLook({ first: [0.1], pairs: [[1], [-1]] }, 0, ruleOf())).toEqual({ confirmed: true, kept: false });
    // A tie is no gain.
    expect(judgeLook({ first: [0], pairs }, 0, ruleOf()).confirmed).toBe(false);
    expect(judgeLook({ first: [-0.1], pairs }, 0.2, ruleOf()).kept).toBe(true);
  });

  it("keeps by its value alone under any, and beyond the noise under threshold", () => {
    expect(judgeLook({ first: [1e-9], pairs: [] }, 0, ruleOf({ rule: "any" }))).toEqual({ confirmed: false, kept: true });
    // t(4) · 1 · √2 = 3.01.
    const threshold = ruleOf({ rule: "threshold" });
    expect(judgeLook({ first: [2.9], pairs: [] }, 0, threshold).kept).toBe(false);
    expect(judgeLook({ first: [2.9], pairs: [] }, 0.2, threshold).kept).toBe(true);
    const byRecords = ruleOf({ rule: "threshold" }, { deterministic: true, sd: 0 });
    expect(judgeLook({ first: [1, 1.1, 0.9, 1], pairs: [] }, 0, byRecords).kept).toBe(true);
    expect(judgeLook({ first: [1, 1.1, 0.9, 1], pairs: [] }, -1, byRecords).kept).toBe(false);
  });
});

describe("candidates that are no better, drawn from real differences", () => {
  const draws = 2000;

  it("are kept as often as the level says: by record a trial, by seeds a confirmation", () => {
    const deterministic = ruleOf({}, { deterministic: true, sd: 0, records: true });
    const records = keptAmong(drawnLooks(byRecord(400), { pairs: 2, draws, seed: 1 }), 0, deterministic);
    expect(records.kept.lower).toBeLessThan(0.06);
    expect(records.kept.upper).toBeGreaterThan(0.04);
    const seeds = keptAmong(drawnLooks(bySeed(60), { pairs: 5, draws, seed: 1 }), 0, ruleOf({ confirmations: 5 }));
    expect(seeds.confirmed.lower).toBeLessThan(0.06);
    expect(seeds.confirmed.upper).toBeGreaterThan(0.035);
    // Half of them look better at first.
    expect(seeds.confirmed.of / draws).toBeCloseTo(0.5, 1);
  });

  it("come again from the same seed, and not from another", () => {
    const differences = byRecord(20);
    const of = (seed: number): unknown => [...drawnLooks(differences, { pairs: 2, draws: 3, seed })];
    expect(of(1)).toEqual(of(1));
    expect(of(1)).not.toEqual(of(2));
  });

  it("are scored on the same records at every measurement", () => {
    for (const { first, pairs } of drawnLooks(byRecord(50), { pairs: 2, draws: 20, seed: 3 })) expect(pairs).toEqual([first, first]);
  });

  it("are found the oftener the larger the gain that is planted, and a gain beyond all noise always", () => {
    const differences = bySeed(40);
    const found = [0, 0.5, 1, 2, 4, 20].map(
      (gain) => keptAmong(drawnLooks(differences, { pairs: 5, draws: 500, seed: 9 }), gain, ruleOf({ confirmations: 5 })).kept.hits,
    );
    expect(found).toEqual([...found].sort((a, b) => a - b));
    expect(new Set(found.slice(0, 4)).size).toBe(4);
    expect(found.at(-1)).toBe(500);
  });

  it("are fewer where each takes many records", () => {
    expect(drawsFor(0, 5)).toBe(2000);
    expect(drawsFor(2000, 2)).toBe(2000);
    expect(drawsFor(2_000_000, 2)).toBe(200);
  });
});

describe("centring", () => {
  it("takes the mean over all away and leaves what differs between pairs", () => {
    const [first, second] = centred([
      [1, 2],
      [5, 8],
    ]);
    expect([first, second]).toEqual([
      [-3, -2],
      [1, 4],
    ]);
  });
});

describe("the generator", () => {
  it("is uniform, independent from draw to draw, and a function of its seed", () => {
    const [a, b] = [generatorOf(1), generatorOf(1)];
    const values = Array.from({ length: 20_000 }, a);
    expect(Array.from({ length: 20_000 }, b)).toEqual(values);
    expect(mean(values)).toBeCloseTo(0.5, 2);
    expect(standardDeviation(values)).toBeCloseTo(1 / Math.sqrt(12), 2);
    const products = values.slice(1).map((value, index) => (value - 0.5) * ((values[index] ?? 0) - 0.5));
    expect(Math.abs(mean(products))).toBeLessThan(0.003);
    expect(Array.from({ length: 3 }, generatorOf(0))).not.toEqual(Array.from({ length: 3 }, generatorOf(1)));
  });
});
