import { describe, expect, test } from "vitest";
import { costsOf, suggestedLimits } from "./init-costs.js";

const minutes = 60_000;
const promotion = { confirmations: 2, level: 0.05, minimumGain: null };

describe("what a search will take", () => {
  test("a rule that confirms: each confirmation measures the candidate and the leader", () => {
    const costs = costsOf({ noise: { calibrate: 5, remeasureEvery: 10 }, promotion: { ...promotion, rule: "confirmed" } }, 10 * minutes);
    expect(costs).toEqual({
      trialMs: 10 * minutes,
      calibrationMs: 50 * minutes,
      repetitions: 5,
      confirmedTrialMs: 50 * minutes,
      confirmations: 2,
      // (480 − 50) / 11
      nightTrials: 39,
    });
  });

  test("a threshold confirms nothing, and a night may hold nothing but calibration", () => {
    const environment = { noise: { calibrate: 5, remeasureEvery: 0 }, promotion: { ...promotion, rule: "threshold" as const } };
    expect(costsOf(environment, minutes)).toMatchObject({ confirmedTrialMs: minutes, confirmations: 0, nightTrials: 475 });
    expect(costsOf(environment, 120 * minutes).nightTrials).toBe(0);
    expect(costsOf(environment, 0).nightTrials).toBeGreaterThan(0);
  });
});

test.each([
  [20, 0, "30 s", "512 MiB"],
  [12_345, 300 * 2 ** 20, "40 s", "768 MiB"],
  [20_001, 512 * 2 ** 20, "2 min", "1 GiB"],
  [610_000, 3 * 2 ** 30, "31 min", "6 GiB"],
  [21 * minutes, 2.1 * 2 ** 30, "70 min", "5 GiB"],
  [3 * 60 * minutes, 640 * 2 ** 20, "9 h", "1280 MiB"],
])("%d ms and %d bytes: wall %s, memory %s", (wallMs, peakMemoryBytes, wall, memory) => {
  expect(suggestedLimits({ wallMs, peakMemoryBytes })).toEqual({ wall, memory });
});
