import { describe, expect, it } from "vitest";
import { testConfiguration } from "../../../tests/support/configuration.js";
import { candidateOf, proposal, SimulatedRun } from "../../../tests/support/simulated-run.js";
import type { RunConfiguration } from "../protocol/run.js";
import { decide } from "./decide.js";
import { due } from "./due.js";
import { frontierView, trialView } from "./session-views.js";
import { proposalView } from "./views.js";

const world = {
  answer: (call: string) => proposal(call),
  measure: (subject: string, seed: number) => ({ value: Number(subject.slice(1)) + (seed % 10) / 1000 }),
};

function started(changes: Partial<RunConfiguration> = {}, trials = 5): SimulatedRun {
  const budget = { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null };
  return new SimulatedRun(testConfiguration({ budget, organization: { name: "tree", configuration: { drafts: 1 } }, ...changes }), world);
}

type Word = "hold" | "pin" | "release" | "cancel_trial";
const say = (run: SimulatedRun, type: Word, trial: string): void => run.dispatch({ at: run.at, type, trial, reason: "the operator says" });

function untilTrue(run: SimulatedRun, holds: (run: SimulatedRun) => boolean): void {
  for (let step = 0; step < 1000 && !holds(run); step++) run.work(1);
  expect(holds(run)).toBe(true);
}
const admitted = (trial: string) => (run: SimulatedRun) => run.state.trials[trial] !== undefined;
const ended = (trial: string) => (run: SimulatedRun) => run.state.trials[trial]?.phase === "ended";
const bases = (run: SimulatedRun): (string | null)[] =>
  Object.values(run.state.trials)
    .filter(({ kind }) => kind === "search")
    .map(({ base }) => base);

describe("a held trial", () => {
  it("is no base, leads all the same, and is one again when it is released", () => {
    const run = started({}, 6);
    untilTrue(run, ended("t2"));
    expect(run.state.leader?.trial).toBe("t2");
    say(run, "hold", "t2");
    untilTrue(run, ended("t4"));
    say(run, "hold", "t4");
    say(run, "hold", "t3");
    expect(run.state.leader?.trial).toBe("t4");
    untilTrue(run, ended("t5"));
    say(run, "release", "t4");
    run.work();
    // t1: a draft; t2 from it; t3 from t1, since t2 is held; t4 from t3; t5 from t1, the best that nobody holds; t6 from t5.
    expect(bases(run)).toEqual(["t0", "t1", "t1", "t3", "t1", "t5"]);
    expect(run.state.phase).toBe("finished");
  });

  it("blocks no serial run while it waits for its measurement, and is cancelled when the run ends", () => {
    const run = started();
    untilTrue(run, admitted("t1"));
    say(run, "hold", "t1");
    expect(due(run.state, run.at).map(({ kind }) => kind)).toEqual(["advance"]);
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", reason: "budget: trials", openTrials: [], measurements: {} });
    expect(run.state.trials["t1"]).toMatchObject({
      status: "cancelled",
      reason: expect.stringMatching(/held by the operator when the run ended/),
    });
    expect(run.state.searchTrialsEnded).toBe(5);
  });

  it("is measured as soon as it is released", () => {
    const run = started();
    untilTrue(run, admitted("t1"));
    say(run, "hold", "t1");
    untilTrue(run, ended("t3"));
    say(run, "release", "t1");
    run.work();
    expect(run.state.trials["t1"]?.status).toBe("discard");
  });

  it("lets what runs of it come to its end, and no confirmation begin", () => {
    const run = started();
    untilTrue(run, admitted("t1"));
    const [measurement = ""] = Object.keys(run.state.measurements);
    run.dispatch({ at: run.at, type: "start_attempt", measurement });
    say(run, "hold", "t1");
    expect(due(run.state, run.at)).toEqual([{ kind: "measurement", measurement }]);
    untilTrue(run, ({ state }) => state.trials["t1"]?.phase === "provisional");
    expect(due(run.state, run.at).some(({ kind }) => kind === "measurement")).toBe(false);
    say(run, "cancel_trial", "t1");
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", trials: { t1: { status: "cancelled", values: { score: expect.any(Number) } } } });
  });

  it("that is under way when the run is told to finish comes to its end, confirmations and all", () => {
    const run = started();
    untilTrue(run, admitted("t1"));
    const [measurement = ""] = Object.keys(run.state.measurements);
    run.dispatch({ at: run.at, type: "start_attempt", measurement });
    say(run, "hold", "t1");
    run.dispatch({ at: run.at, type: "finish", reason: "enough" });
    expect(run.state.steers).toEqual({});
    expect(() => say(run, "hold", "t1")).toThrow(/finishing/);
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", trials: { t1: { status: "keep" } } });
  });

  it("does not keep a list from ending", () => {
    const run = started({ organization: { name: "list", configuration: {} }, researchers: { "*": "none" } });
    for (const text of ["one", "two"]) {
      const { reference, manifest } = candidateOf(text);
      const queued = { candidate: reference, manifest, edited: ["a.txt"], base: "t0", hypothesis: text, submitter: "operator", move: {} };
      run.dispatch({ at: run.at, type: "enqueue", before: null, reason: "r", ...queued });
    }
    untilTrue(run, admitted("t1"));
    say(run, "hold", "t1");
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", trials: { t1: { status: "cancelled" }, t2: { status: "keep" } } });
  });
});

describe("a pinned trial", () => {
  it("is what improvements start from, several in turn, until it is released", () => {
    const run = started({}, 7);
    untilTrue(run, ended("t2"));
    say(run, "pin", "t1");
    untilTrue(run, ended("t3"));
    say(run, "pin", "t2");
    untilTrue(run, ended("t5"));
    say(run, "release", "t1");
    untilTrue(run, ended("t6"));
    say(run, "release", "t2");
    run.work();
    expect(bases(run).slice(0, 3)).toEqual(["t0", "t1", "t1"]);
    expect(new Set(bases(run).slice(3, 5))).toEqual(new Set(["t1", "t2"]));
    expect(bases(run).slice(5)).toEqual(["t2", "t6"]);
  });

  it("is none any more once it is retracted or held", () => {
    const run = started();
    untilTrue(run, ended("t2"));
    say(run, "pin", "t1");
    say(run, "hold", "t1");
    say(run, "pin", "t2");
    expect(run.state.steers).toMatchObject({ t1: { steer: "held" }, t2: { steer: "pinned" } });
    run.dispatch({ at: run.at, type: "retract", trial: "t2", reason: "leak" });
    expect(Object.keys(run.state.steers)).toEqual(["t1"]);
    run.work();
    expect(bases(run).slice(2)).not.toContain("t2");
  });
});

describe("a word on a trial", () => {
  it("is refused where it would mean nothing, and said twice it is said once", () => {
    const run = started();
    untilTrue(run, admitted("t1"));
    const word = (type: Word, trial: string) => () => decide(run.state, { at: 1, type, trial, reason: "r" });
    expect(word("pin", "t1")).toThrow(/still measured/);
    expect(word("hold", "t0")).toThrow(/searched trial/);
    expect(word("hold", "t9")).toThrow(/trial of this run/);
    expect(word("pin", "constructor")).toThrow(/trial of this run/);
    expect(word("release", "t1")).toThrow(/held or pinned/);
    say(run, "hold", "t1");
    expect(word("hold", "t1")().events).toEqual([]);
    say(run, "release", "t1");
    untilTrue(run, ended("t1"));
    run.dispatch({ at: run.at, type: "retract", trial: "t1", reason: "leak" });
    expect(word("pin", "t1")).toThrow(/retracted/);
    run.work();
    expect(word("hold", "t2")).toThrow(/not over/);
  });

  it("is told to whoever proposes, and changes no view where there is none", () => {
    const run = started();
    untilTrue(run, ended("t2"));
    expect(proposalView(run.state, "improve", "t2", 1)).not.toHaveProperty("steering");
    say(run, "pin", "t1");
    say(run, "hold", "t2");
    expect(proposalView(run.state, "improve", "t1", 1).steering).toEqual({ held: ["t2"], pinned: ["t1"] });
    expect(trialView(run.state, "t2", "researcher").steer).toBe("held");
    expect(frontierView(run.state, "reviewer")).toMatchObject({ steeredByTheOperator: { held: ["t2"], pinned: ["t1"] } });
  });
});
