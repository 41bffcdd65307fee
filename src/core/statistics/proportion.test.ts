import { describe, expect, it } from "vitest";
import { shareOf } from "./proportion.js";

describe("the exact interval of a proportion", () => {
  it("agrees with published tables and closed forms", () => {
    // Without a hit the upper bound has a closed form: 1 − (α/2)^(1/n).
    expect(shareOf(0, 40).lower).toBe(0);
    expect(shareOf(0, 40).upper).toBeCloseTo(1 - 0.025 ** (1 / 40), 10);
    expect(shareOf(40, 40)).toMatchObject({ lower: expect.closeTo(0.025 ** (1 / 40), 10), upper: 1 });
    // Geigy Scientific Tables: 5 of 50.
    expect(shareOf(5, 50).lower).toBeCloseTo(0.0333, 4);
    expect(shareOf(5, 50).upper).toBeCloseTo(0.2181, 4);
    // 10 of 20.
    expect(shareOf(10, 20).lower).toBeCloseTo(0.272, 3);
    expect(shareOf(10, 20).upper).toBeCloseTo(0.728, 3);
  });

  it("knows nothing without a try", () => {
    expect(shareOf(0, 0)).toEqual({ hits: 0, of: 0, lower: 0, upper: 1 });
  });

  it("covers as it says, whatever the rate", () => {
    for (const rate of [0.01, 0.05, 0.3]) {
      let covered = 0;
      for (let hits = 0; hits <= 40; hits++) {
        const { lower, upper } = shareOf(hits, 40);
        if (lower <= rate && rate <= upper) covered += binomial(hits, 40, rate);
      }
      expect(covered).toBeGreaterThanOrEqual(0.95);
    }
  });

  it("refuses counts that are none", () => {
    for (const [hits, of] of [
      [-1, 3],
      [4, 3],
      [0.5, 3],
    ] as const)
      expect(() => shareOf(hits, of)).toThrow(RangeError);
  });
});

function binomial(hits: number, of: number, rate: number): number {
  let chance = (1 - rate) ** of;
  for (let each = 1; each <= hits; each++) chance *= ((of - each + 1) / each) * (rate / (1 - rate));
  return chance;
}
