import { describe, expect, it } from "vitest";
import { drawsOf } from "../harness/draw.js";
import { chanceOfKeep, fewestTrials, type KeepRecord } from "./saturation.js";

/** The record of trials of which those at `places` were keeps. */
function record(trials: number, places: readonly number[]): KeepRecord {
  return { trials, keeps: places.length, keptPlaces: places.reduce((sum, place) => sum + place, 0) };
}

/** A process in which trial n is a keep with probability `rate(n)`. */
function simulated(seed: number, trials: number, rate: (place: number) => number): KeepRecord {
  const draws = drawsOf(seed);
  const places = Array.from({ length: trials }, (_, index) => index + 1);
  return record(
    trials,
    places.filter((place) => draws.uniform("keep", place) < rate(place)),
  );
}

const horizon = 10;
const runs = 400;
const meanChance = (trials: number, rate: (place: number) => number): number => {
  let sum = 0;
  for (let seed = 0; seed < runs; seed++) sum += chanceOfKeep(simulated(seed, trials, rate), horizon) ?? Number.NaN;
  return sum / runs;
};

describe("the chance that the next trials bring a keep", () => {
  it("says nothing before there is something to say", () => {
    expect(chanceOfKeep(record(fewestTrials - 1, [1, 2, 3]), horizon)).toBeNull();
    expect(chanceOfKeep(record(fewestTrials, [1, 2, 3]), horizon)).not.toBeNull();
  });

  it("is the beta-binomial's, with the weights that the formula states", () => {
    // n = 20: effective 3·20·21 / 82 = 15.3658…, keeps at 10 and 20 are 30 of 210: a = 2.6951…, b = 13.6707…; h = 1 gives a / (a + b).
    const effective = 1260 / 82;
    const a = 0.5 + (effective * 30) / 210;
    expect(chanceOfKeep(record(20, [10, 20]), 1)).toBeCloseTo(a / (effective + 1), 12);
    const b = effective + 1 - a;
    const two = 1 - (b / (a + b)) * ((b + 1) / (a + b + 1));
    expect(chanceOfKeep(record(20, [10, 20]), 2)).toBeCloseTo(two, 12);
  });

  it.each([0.02, 0.05, 0.1, 0.3])("is right on average where every trial is a keep with probability %f", (rate) => {
    const truth = 1 - (1 - rate) ** horizon;
    expect(Math.abs(meanChance(100, () => rate) - truth)).toBeLessThan(0.04);
    expect(Math.abs(meanChance(400, () => rate) - truth)).toBeLessThan(0.025);
  });

  it("follows a search that finds less and less, and errs towards going on", () => {
    // The n-th of independent draws is the best so far with probability 1/n (Rényi 1962): one of the next h with h / (n + h).
    for (const trials of [50, 100, 300]) {
      const truth = horizon / (trials + horizon);
      expect(meanChance(trials, (place) => 1 / place)).toBeGreaterThan(truth);
      expect(meanChance(trials, (place) => 1 / place)).toBeLessThan(truth * 3);
    }
  });

  it("falls with every trial that is no keep, below any level, and rises with a keep", () => {
    let before = 1;
    for (let trials = fewestTrials; trials <= 2000; trials++) {
      const chance = chanceOfKeep(record(trials, [3, 8]), horizon) ?? Number.NaN;
      expect(chance).toBeLessThan(before);
      before = chance;
    }
    expect(before).toBeLessThan(0.005);
    expect(chanceOfKeep(record(2001, [3, 8, 2001]), horizon)).toBeGreaterThan(before);
  });
});
