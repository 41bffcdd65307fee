import { describe, expect, it } from "vitest";
import { testConfiguration } from "../../../../tests/support/configuration.js";
import { proposal, SimulatedRun, type World } from "../../../../tests/support/simulated-run.js";
import { replay } from "../evolve.js";
import { initialState } from "../state.js";

/** t1 leads by far; t2 looks better still, and its confirmation beside t1 has begun when t1 turns out to be none. */
function confirming(second: World["measure"]): SimulatedRun {
  const run = new SimulatedRun(testConfiguration({ budget: { ...testConfiguration().budget, trials: 2 } }), {
    answer: (call, round) => proposal(`${call}/${round}`),
    measure: (subject, seed, reason) => {
      if (subject === "t2" && reason === "first") return { value: 30 };
      if (run.state.openTrials.includes("t2") && reason !== "first") return second(subject, seed, reason);
      return { value: (subject === "t1" ? 20 : 1) + (seed % 7) / 100 };
    },
  });
  while (run.state.trials["t2"]?.phase !== "provisional") run.work(1);
  expect(run.state.trials["t2"]).toMatchObject({ confirmation: { against: "t1", round: 1 } });
  run.dispatch({ at: run.at, type: "retract", trial: "t1", reason: "leaks" });
  run.work();
  expect(run.state.phase).toBe("finished");
  expect(replay(initialState(), run.stored())).toEqual(run.state);
  return run;
}

const rounds = (run: SimulatedRun): unknown[] =>
  run.events.flatMap((event) =>
    event.type === "trial.provisional" && event.data.trial === "t2" ? [[event.data.against, event.data.round]] : [],
  );
const values =
  (t2: number): World["measure"] =>
  (subject, seed) => ({ value: ({ t1: 20, t2 }[subject] ?? 1) + (seed % 7) / 100 });

describe("a candidate whose leader is retracted while it is confirmed", () => {
  it("is compared with the leader of now, though it does not beat the one that was none", () => {
    const run = confirming(values(10));
    expect(rounds(run)).toEqual([
      ["t1", 1],
      ["t0", 2],
    ]);
    expect(run.state.trials["t2"]).toMatchObject({ status: "keep", reason: "better than t0", leaderVerdict: { result: "improved" } });
    expect(run.state.leader?.trial).toBe("t2");
  });

  it("is compared with the leader of now where it beat that one too", () => {
    const run = confirming(values(25));
    expect(rounds(run)).toHaveLength(2);
    expect(run.state.trials["t2"]).toMatchObject({ status: "keep", reason: "better than t0" });
  });

  it("is discarded at once where the leader of now is no worse", () => {
    const run = confirming(values(-3));
    expect(rounds(run)).toEqual([["t1", 1]]);
    expect(run.state.trials["t2"]).toMatchObject({ status: "discard", reason: "not better than t0, which became the leader meanwhile" });
  });

  it("does not pay for a paired run of that one that failed, and does for its own", () => {
    const failing =
      (failed: string): World["measure"] =>
      (subject, seed, reason) =>
        subject === failed ? { status: "crashed" } : values(10)(subject, seed, reason);
    expect(confirming(failing("t1")).state.trials["t2"]).toMatchObject({ status: "keep", reason: "better than t0" });
    expect(confirming(failing("t2")).state.trials["t2"]).toMatchObject({
      status: "discard",
      reason: expect.stringMatching(/confirmation ended crashed/),
    });
  });
});
