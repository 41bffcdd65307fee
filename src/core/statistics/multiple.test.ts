import { describe, expect, it } from "vitest";
import { holm, oneSidedP } from "./multiple.js";
import { pairedVerdict } from "./verdict.js";

describe("a one-sided p", () => {
  const term = (standardError: number, degreesOfFreedom: number) => ({ standardError, degreesOfFreedom });

  it("is Student's where there is one term", () => {
    // t = 2.919986 has 0.05 above it at 2 degrees of freedom, 1.894579 at 7.
    expect(oneSidedP(2.919986, [term(1, 2)])).toBeCloseTo(0.05, 6);
    expect(oneSidedP(1.894579, [term(1, 7)])).toBeCloseTo(0.05, 6);
    expect(oneSidedP(-2.919986, [term(1, 2)])).toBeCloseTo(0.95, 6);
    expect(oneSidedP(0, [term(1, 2)])).toBe(0.5);
  });

  it("is below a level exactly where a verdict at that level says improved", () => {
    const pairs = [0.3, 0.1, 0.25, 0.2].map((gain, seed) => ({
      seed,
      candidate: { value: 1 + gain, records: null },
      leader: { value: 1, records: null },
    }));
    const gains = [0.3, 0.1, 0.25, 0.2];
    const mean = 0.2125;
    const sd = Math.sqrt(gains.reduce((sum, gain) => sum + (gain - mean) ** 2, 0) / 3);
    const p = oneSidedP(mean, [term(sd / 2, 3)]);
    expect(pairedVerdict(pairs, "maximize", p * 1.001, { deterministic: false }).result).toBe("improved");
    expect(pairedVerdict(pairs, "maximize", p * 0.999, { deterministic: false }).result).toBe("undecided");
  });

  it("is certain where nothing varies", () => {
    expect(oneSidedP(0.1, [term(0, 2)])).toBe(0);
    expect(oneSidedP(-0.1, [term(0, 2)])).toBe(1);
    expect(oneSidedP(0, [term(0, 2)])).toBe(1);
    expect(oneSidedP(1e6, [term(1, 50)])).toBe(1e-9);
  });
});

describe("Holm's adjustment", () => {
  it("multiplies the smallest by all, the next by one less, and never goes down", () => {
    expect(holm([0.01, 0.04, 0.03, 0.005])).toEqual([0.03, 0.06, 0.06, 0.02].map((p) => expect.closeTo(p, 12)));
    expect(holm([0.9, 0.8])).toEqual([1, 1]);
    expect(holm([0.02])).toEqual([0.02]);
    expect(holm([])).toEqual([]);
  });
});
