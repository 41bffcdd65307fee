import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../tests/support/configuration.js";
import { proposal, SimulatedRun, type World } from "../../../tests/support/simulated-run.js";
import type { ReusedCalibration } from "../protocol/calibration.js";
import { RefusedError } from "../protocol/errors.js";
import { parseEvent } from "../protocol/events.js";
import { project } from "../protocol/projection.js";
import { replay } from "./evolve.js";
import { initialState } from "./state.js";

const host = { platform: "linux", cpus: 2, cpuModel: "test" };

function calibration(values: readonly number[], changes: Partial<ReusedCalibration["from"]> = {}): ReusedCalibration {
  return {
    from: { run: "earlier", environmentDigest: "e".repeat(64), measuredAt: 500, host, ...changes },
    results: values.map((score, pair) => ({
      pair,
      seed: pair === 0 ? 7 : 1000 + pair,
      values: { score },
      records: null,
      wallMs: { train: 100 },
      cpuMs: 80,
    })),
  };
}

/** A baseline around ten, and candidates that are better by one. */
function world(remeasured = 10): World {
  return {
    answer: (call) => proposal(call),
    measure: (subject, seed, reason) => ({
      value: reason === "remeasurement" ? remeasured : (subject === "t0" ? 10 : 11) + (seed % 7) / 100,
    }),
  };
}

function run(values: readonly number[], given: World = world(), remeasureEvery = 0): SimulatedRun {
  const environment = testEnvironment({ noise: { calibrate: 3, remeasureEvery } });
  return new SimulatedRun(
    testConfiguration({ environment, budget: { ...testConfiguration().budget, trials: 2 } }),
    given,
    calibration(values),
  );
}

function requested(simulated: SimulatedRun): { reason: string; trial: string }[] {
  return simulated.events.flatMap((event) =>
    event.type === "measurement.requested" ? [{ reason: event.data.reason, trial: event.data.trial }] : [],
  );
}

describe("a calibration that is taken over", () => {
  it("stands for the repetitions: the same noise and starting point, and not one of them is measured", () => {
    const simulated = run([10, 10.2, 9.8]);
    simulated.work();
    expect(simulated.state.phase).toBe("finished");
    expect(requested(simulated).filter(({ reason }) => reason === "calibration")).toEqual([]);
    expect(simulated.state.noise).toMatchObject({ n: 3, mean: 10, deterministic: false });
    expect(simulated.state.noise?.sd).toBeCloseTo(0.2, 10);
    expect(simulated.state).toMatchObject({ pipelineWallMs: 100, pipelineCpuMs: 80 });
    // And what the one look at it took here; what was spent elsewhere is not booked.
    expect(simulated.state.trials["t0"]?.cpuMs).toBe(240 + 4);
    expect(simulated.state.budget.spent.computeMs).toBeLessThan(240);
  });

  it("is looked at by one measurement of the baseline before anything is searched, once", () => {
    const simulated = run([10, 10.2, 9.8]);
    simulated.work();
    expect(requested(simulated)[0]).toEqual({ reason: "remeasurement", trial: "t0" });
    expect(requested(simulated).filter(({ reason }) => reason === "remeasurement")).toHaveLength(1);
    expect(simulated.state.drift).toEqual([]);
  });

  it("does not hide that the host changed since", () => {
    const simulated = run([10, 10.2, 9.8], world(12));
    simulated.work();
    expect(simulated.state.drift).toHaveLength(1);
    expect(simulated.state.drift[0]?.message).toContain("--recalibrate");
  });

  it("carries no verdict: a confirmation measures the leader again", () => {
    const simulated = run([10, 10.2, 9.8]);
    simulated.work();
    const kept = simulated.state.keeps.filter((id) => id !== "t0");
    expect(kept).not.toEqual([]);
    const again = requested(simulated).filter(({ reason }) => reason === "confirmation_of_leader");
    expect(again.length).toBeGreaterThanOrEqual(3);
  });

  it("is folded the same from the ledger, and projected without where it came from", () => {
    const simulated = run([10, 10.2, 9.8]);
    simulated.work();
    expect(replay(initialState(), simulated.stored())).toEqual(simulated.state);
    const reused = project(simulated.stored().map(parseEvent)).find(({ type }) => type === "calibration.reused");
    expect(JSON.stringify(reused)).not.toContain("earlier");
    expect(reused?.data).toMatchObject({ results: [{ values: { score: 10 } }, {}, {}] });
  });

  it("of another environment, or with a hole in it, is refused", () => {
    const start = (given: ReusedCalibration): SimulatedRun => new SimulatedRun(testConfiguration(), world(), given);
    expect(() => start(calibration([10, 10.2, 9.8], { environmentDigest: "f".repeat(64) }))).toThrow(RefusedError);
    expect(() => start(calibration([10, 10.2]))).toThrow(RefusedError);
    const whole = calibration([10, 10.2, 9.8]);
    expect(() => start({ ...whole, results: whole.results.map((result) => ({ ...result, seed: 3 })) })).toThrow(RefusedError);
    expect(() => start({ ...whole, results: [...whole.results].reverse() })).toThrow(RefusedError);
    expect(() => start({ ...whole, results: whole.results.map((result) => ({ ...result, values: {} })) })).toThrow(RefusedError);
  });
});
