import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../tests/support/configuration.js";
import { candidateOf, proposal, SimulatedRun, type World } from "../../../tests/support/simulated-run.js";
import { promotion } from "../protocol/environment.js";
import { pairedVerdict } from "../statistics/verdict.js";
import { confirmationPairs } from "./decide/adjudicate.js";
import { trialOf } from "./state.js";

/** A list run under the rule `compare`, with candidates that are named by what they add to the baseline's 10. */
function compared(names: readonly string[], measure: World["measure"]): SimulatedRun {
  const rule = promotion.parse({ rule: "compare", confirmations: 3, level: 0.05, minimumGain: 0.2 });
  const run = new SimulatedRun(
    testConfiguration({
      environment: testEnvironment(),
      promotion: rule,
      organization: { name: "list", configuration: {} },
      researchers: { "*": "none" },
    }),
    { answer: () => proposal("nobody asks"), measure },
  );
  for (const [index, name] of names.entries()) {
    const { reference, manifest } = candidateOf(name);
    run.dispatch({
      at: run.at,
      type: "enqueue",
      before: null,
      reason: "the test",
      candidate: reference,
      manifest,
      edited: ["a.txt"],
      base: "t0",
      hypothesis: `number ${index}`,
      submitter: "test",
      move: {},
    });
  }
  run.work();
  return run;
}

const seedNoise = (seed: number): number => (seed % 100) / 1000;

describe("the rule compare", () => {
  it("measures every valid trial beside the baseline on fresh seeds, whatever its first value, and promotes none", () => {
    // t1 is better, t2 worse, t3 equal, and t4 looks best at first sight alone.
    const gains: Readonly<Record<string, number>> = { t0: 0, t1: 1, t2: -1, t3: 0, t4: 0 };
    const run = compared(["a", "b", "c", "d"], (subject, seed, reason) => ({
      value: 10 + (gains[subject] ?? 0) + seedNoise(seed) + (subject === "t4" && reason === "first" ? 50 : 0),
    }));
    expect(run.state).toMatchObject({ phase: "finished", leader: { trial: "t0" }, keeps: ["t0"], statuses: { discard: 4 } });
    const verdicts = ["t1", "t2", "t3", "t4"].map((id) => trialOf(run.state, id).leaderVerdict);
    expect(verdicts.map((verdict) => Number(verdict?.gain.toFixed(6)))).toEqual([1, -1, 0, 0]);
    for (const verdict of verdicts) expect(verdict).toMatchObject({ basis: "paired_seeds", seeds: 3, level: 0.05 });
    const seeds = run.events.flatMap((event) =>
      event.type === "measurement.requested" && event.data.reason === "confirmation" ? [event.data.seed] : [],
    );
    expect(new Set(seeds).size).toBe(12);
  });

  it("takes a baseline without noise and without records: then a gain is exact", () => {
    const run = compared(["a", "b"], (subject) => ({ value: subject === "t1" ? 12 : 10 }));
    expect(trialOf(run.state, "t1").leaderVerdict).toMatchObject({ gain: 2, lower: 2, upper: 2 });
    expect(trialOf(run.state, "t2").leaderVerdict).toMatchObject({ gain: 0, lower: 0, upper: 0 });
  });

  it("records no verdict where a candidate fails, at first or later", () => {
    const run = compared(["a", "b", "c"], (subject, seed, reason) => {
      if (subject === "t1") return { status: "crashed" };
      return subject === "t2" && reason === "confirmation" ? { status: "timed_out" } : { value: 10 + seedNoise(seed) };
    });
    expect(run.state.statuses).toEqual({ crashed: 1, discard: 2 });
    expect(trialOf(run.state, "t1").leaderVerdict).toBeNull();
    expect(trialOf(run.state, "t2")).toMatchObject({ leaderVerdict: null, reason: "a confirmation ended timed_out: scripted" });
  });

  it("leaves the pairs behind, so that the same verdict can be had at another level", () => {
    const run = compared(["a"], (subject, seed) => ({ value: 10 + (subject === "t1" ? seedNoise(seed) : 0) + seedNoise(seed) }));
    const trial = trialOf(run.state, "t1");
    const again = (level: number) =>
      pairedVerdict(confirmationPairs(run.state, trial, new Map()), "maximize", level, { deterministic: false });
    expect(again(0.05)).toEqual(trial.leaderVerdict);
    expect(again(0.01).lower).toBeLessThan(again(0.05).lower ?? Number.NaN);
  });
});
