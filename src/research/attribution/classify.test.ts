import { describe, expect, it } from "vitest";
import { drawsOf } from "../../core/harness/draw.js";
import { oneSidedP } from "../../core/statistics/multiple.js";
import { errorOfMean, marginOf, mean } from "../../core/statistics/student.js";
import { classify } from "./classify.js";
import type { Measured } from "./measured.js";

const level = 0.05;

/** As `measuredOf` would have it, from gains pair by pair. */
function compared(gains: readonly number[]): Measured {
  const [value, terms] = [mean(gains), [errorOfMean(gains)]];
  const half = marginOf(terms, level);
  return {
    kind: "compared",
    gain: { value, lower: value - half, upper: value + half },
    pBetter: oneSidedP(value, terms),
    pWorse: oneSidedP(-value, terms),
  };
}

const classesOf = (measured: readonly Measured[], margin: number): (string | null)[] =>
  classify(measured, level, margin).map((each) => each.class);

describe("what leaving a change out says of it", () => {
  it("is real, harmful, neutral or undecided", () => {
    const all = [compared([1, 1.1, 0.9]), compared([-1, -1.1, -0.9]), compared([0.01, -0.01, 0.005]), compared([0.5, -0.4, 0.1])];
    expect(classesOf(all, 0.1)).toEqual(["real", "harmful", "neutral", "undecided"]);
    // A margin of nothing: equal alone is neutral.
    expect(classesOf([compared([0, 0, 0]), compared([0.01, -0.01, 0])], 0)).toEqual(["neutral", "undecided"]);
  });

  it("needs more of a change among many, and says why it is undecided", () => {
    const faint = compared([0.3, 0.2, 0.55]);
    expect(classesOf([faint], 0.1)).toEqual(["real"]);
    const among = classify([faint, ...Array.from({ length: 5 }, () => compared([0.5, -0.4, 0.1]))], level, 0.1);
    expect(among[0]).toMatchObject({ class: "undecided", note: expect.stringContaining("several changes at once") });
  });

  it("never calls a small but certain gain neutral", () => {
    expect(classesOf([compared([0.01, 0.011, 0.009])], 1)).toEqual(["real"]);
  });

  it("tells a recipe that fails from a measurement that does", () => {
    const failed = (isInvalid: boolean): Measured => ({ kind: "failed", isInvalid, reason: "crashed" });
    expect(classesOf([failed(true), failed(false), { kind: "open" }], 0.1)).toEqual(["required", "undecided", null]);
    expect(classesOf([{ kind: "compared", gain: { value: 1, lower: null, upper: null }, pBetter: null, pWorse: null }], 0.1)).toEqual([
      "undecided",
    ]);
  });

  it("calls one of five changes that do nothing real in no more than one run of twenty", () => {
    const draws = drawsOf(11);
    let [asked, runsWithAClaim] = [0, 0];
    // Box and Muller's normal draws.
    const normal = (): number =>
      Math.sqrt(-2 * Math.log(1 - draws.uniform("radius", ++asked))) * Math.cos(2 * Math.PI * draws.uniform("angle", asked));
    const runs = 600;
    for (let run = 0; run < runs; run++) {
      const measured = Array.from({ length: 5 }, () => compared([normal(), normal(), normal()]));
      if (classesOf(measured, 0.1).includes("real")) runsWithAClaim += 1;
    }
    // Three standard errors above 5 %.
    expect(runsWithAClaim / runs).toBeLessThan(0.05 + 3 * Math.sqrt((0.05 * 0.95) / runs));
    expect(runsWithAClaim).toBeGreaterThan(0);
  });
});
