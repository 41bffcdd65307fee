import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../tests/support/configuration.js";
import { candidateOf, proposal, SimulatedRun, type World } from "../../../tests/support/simulated-run.js";
import type { ReusedCalibration } from "../protocol/calibration.js";
import { RefusedError } from "../protocol/errors.js";
import { parseEvent } from "../protocol/events.js";
import { project } from "../protocol/projection.js";
import { due } from "./due.js";
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
function world(remeasured: number | "crashed" = 10): World {
  return {
    answer: (call) => proposal(call),
    measure: (subject, seed, reason) => {
      if (reason === "remeasurement") return remeasured === "crashed" ? { status: remeasured } : { value: remeasured };
      return { value: (subject === "t0" ? 10 : 11) + (seed % 7) / 100 };
    },
  };
}

function run(values: readonly number[], given: World = world(), remeasureEvery = 0, parallel = 1): SimulatedRun {
  const environment = testEnvironment({ noise: { calibrate: 3, remeasureEvery } });
  return new SimulatedRun(
    testConfiguration({ environment, parallel, budget: { ...testConfiguration().budget, trials: 2 } }),
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

  it("is looked at before anything is asked or measured, also where there is room for more, and whatever is handed in meanwhile", () => {
    const simulated = run([10, 10.2, 9.8], world(), 0, 3);
    while (simulated.state.phase !== "searching") simulated.work(1);
    const { reference, manifest } = candidateOf("pushed");
    const submission = { hypothesis: "h", expectedGain: null, respondsTo: [], commitment: {}, edited: ["a.txt"] };
    const by = { submitter: "a person" };
    simulated.dispatch({
      at: 1,
      type: "submit",
      by,
      base: "t0",
      submission: { ...submission, candidate: reference, manifest },
    });
    expect(due(simulated.state, simulated.at)).toEqual([{ kind: "advance" }]);
    simulated.work(1);
    const check = Object.values(simulated.state.measurements).find(({ reason }) => reason === "remeasurement");
    expect(due(simulated.state, simulated.at)).toEqual([{ kind: "measurement", measurement: check?.id }]);
    simulated.dispatch({ at: simulated.at, type: "start_attempt", measurement: check?.id ?? "" });
    expect(due(simulated.state, simulated.at)).toEqual([{ kind: "measurement", measurement: check?.id }]);
    simulated.work();
    expect(simulated.state).toMatchObject({ phase: "finished", calibrationReused: { checked: true } });
    expect(requested(simulated).filter(({ reason }) => reason === "remeasurement")).toHaveLength(1);
  });

  it("stops the run where the baseline fails, before anything is searched, and looks again when it is resumed", () => {
    const simulated = run([10, 10.2, 9.8], world("crashed"), 0, 3);
    for (const times of [1, 2]) {
      simulated.work();
      expect(simulated.state).toMatchObject({ phase: "suspended", calibrationReused: { checked: false }, searchTrialsEnded: 0, calls: {} });
      expect(simulated.state.reason).toMatch(/the baseline was measured again .* ended crashed in stage train: scripted/);
      expect(simulated.state.todo).toContain("--recalibrate");
      expect(requested(simulated)).toEqual(Array(times).fill({ reason: "remeasurement", trial: "t0" }));
      simulated.dispatch({ at: simulated.at, type: "resume", reason: "mended, or so they say" });
    }
    expect(replay(initialState(), simulated.stored())).toEqual(simulated.state);
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

describe("a baseline that is measured again from time to time", () => {
  it("stops the run where it fails, and is measured again when the run is resumed", () => {
    let isBroken = true;
    const given: World = {
      ...world(),
      measure: (subject, seed, reason) =>
        reason === "remeasurement" && isBroken ? { status: "timed_out" } : { value: (subject === "t0" ? 10 : 11) + (seed % 7) / 100 },
    };
    const environment = testEnvironment({ noise: { calibrate: 3, remeasureEvery: 2 } });
    const simulated = new SimulatedRun(testConfiguration({ environment, budget: { ...testConfiguration().budget, trials: 3 } }), given);
    simulated.work();
    expect(simulated.state).toMatchObject({ phase: "suspended", searchTrialsEnded: 2, remeasurements: [] });
    expect(simulated.state.reason).toContain("ended timed_out");
    expect(simulated.state.todo).not.toContain("--recalibrate");
    isBroken = false;
    simulated.dispatch({ at: simulated.at, type: "resume", reason: "mended" });
    simulated.work();
    expect(simulated.state).toMatchObject({ phase: "finished", searchTrialsEnded: 3, remeasurements: [{ afterTrials: 2 }] });
  });
});
