import { describe, expect, it } from "vitest";
import { testConfiguration } from "../../../tests/support/configuration.js";
import { candidateOf, proposal, SimulatedRun } from "../../../tests/support/simulated-run.js";
import type { RunConfiguration } from "../protocol/run.js";
import { decide } from "./decide.js";

const world = {
  answer: (call: string) => proposal(call),
  measure: (subject: string, seed: number) => ({ value: Number(subject.slice(1)) + (seed % 10) / 1000 }),
};

function started(changes: Partial<RunConfiguration> = {}): SimulatedRun {
  return new SimulatedRun(
    testConfiguration({ budget: { trials: 4, costUsd: null, tokens: null, computeMs: null, wallMs: null }, ...changes }),
    world,
  );
}

const enqueue = (run: SimulatedRun, text: string, before: string | null = null): void => {
  const { reference, manifest } = candidateOf(text);
  run.dispatch({
    at: run.at,
    type: "enqueue",
    before,
    reason: "worth a look",
    candidate: reference,
    manifest,
    edited: ["a.txt"],
    base: "t0",
    hypothesis: `by hand: ${text}`,
    submitter: "operator",
    move: {},
  });
};

const admitted = (run: SimulatedRun): string[] =>
  Object.values(run.state.trials)
    .filter(({ kind }) => kind === "search")
    .map(({ hypothesis }) => hypothesis);

describe("the operator's queue", () => {
  it("goes before what the organization wants, in its order, and uses trials", () => {
    const run = started();
    enqueue(run, "one");
    enqueue(run, "two");
    enqueue(run, "three", "q1");
    run.dispatch({ at: run.at, type: "requeue", entry: "q1", before: null, reason: "later" });
    run.dispatch({ at: run.at, type: "dequeue", entry: "q2", reason: "no" });
    run.work();
    expect(admitted(run)).toEqual(["by hand: three", "by hand: one", "try c1", "try c2"]);
    expect(run.state.queue).toEqual([]);
    expect(run.state.trials["t1"]?.move).toEqual({ queue: "q3" });
  });

  it("is worked off and then over where the organization is a list", () => {
    const run = started({ organization: { name: "list", configuration: {} }, researchers: { "*": "none" } });
    enqueue(run, "one");
    enqueue(run, "one");
    run.work();
    expect(admitted(run)).toHaveLength(2);
    expect(run.state).toMatchObject({ phase: "finished", reason: "the list is worked off" });
  });

  it("refuses what is outside of the surface, tried before, or stands on nothing", () => {
    const run = started();
    enqueue(run, "one");
    const { reference, manifest } = candidateOf("two");
    const given = { at: 1, type: "enqueue", before: null, reason: "r", hypothesis: "h", submitter: "operator", move: {} } as const;
    const two = { candidate: reference, manifest, edited: ["a.txt"], base: "t0" };
    expect(() => decide(run.state, { ...given, ...two, edited: ["evaluate.py"] })).toThrow(/evaluate\.py/);
    expect(() => decide(run.state, { ...given, ...two, base: "t9" })).toThrow(/base trial/);
    expect(() => decide(run.state, { ...given, ...two, before: "q9" })).toThrow(/queue/);
    expect(() => decide(run.state, { ...given, ...two, ...candidateBaseline() })).toThrow(/same content/);
    expect(() => decide(run.state, { at: 1, type: "dequeue", entry: "q7", reason: "r" })).toThrow(/queue/);
  });

  it("drops an entry whose base was retracted meanwhile", () => {
    const run = started();
    for (let step = 0; step < 60 && run.state.trials["t1"]?.status == null; step++) run.work(1);
    const { reference, manifest } = candidateOf("on it");
    run.dispatch({ at: run.at, type: "pause", reason: "wait" });
    run.dispatch({
      at: run.at,
      type: "enqueue",
      before: null,
      reason: "r",
      candidate: reference,
      manifest,
      edited: ["a.txt"],
      base: "t1",
      hypothesis: "h",
      submitter: "operator",
      move: {},
    });
    run.dispatch({ at: run.at, type: "retract", trial: "t1", reason: "leak" });
    run.dispatch({ at: run.at, type: "resume", reason: "on" });
    run.work();
    expect(run.events.filter(({ type }) => type === "queue.removed")).toHaveLength(1);
    expect(admitted(run)).not.toContain("h");
  });

  it("drops an entry whose content was measured while it waited", () => {
    const run = started();
    enqueue(run, "one");
    enqueue(run, "one");
    run.work();
    expect(admitted(run)).toEqual(["by hand: one", "try c1", "try c2", "try c3"]);
    expect(run.events.find(({ type }) => type === "queue.removed")?.data).toMatchObject({
      entry: "q2",
      reason: expect.stringMatching(/same content as trial t1/),
    });
  });

  it("counts among the drafts that a tree wants: with two in front, one of three is asked for", () => {
    const run = started({ organization: { name: "tree", configuration: { drafts: 3, debugProbability: 0 } } });
    enqueue(run, "one");
    enqueue(run, "two");
    run.work();
    expect(run.state.organization).toMatchObject({ drafts: { ended: 3, open: 0 } });
    expect(Object.values(run.state.trials).map(({ move }) => move["stage"] ?? null)).toEqual([null, null, null, "draft", "improve"]);
  });

  it("keeps what waits from being pruned", () => {
    const run = started();
    enqueue(run, "one");
    const waits = candidateOf("one").reference.blob;
    const prune = (digest: string) => () => decide(run.state, { at: run.at, type: "prune_blobs", digests: [digest], reason: "room" });
    expect(prune(waits)).toThrow(/which a candidate/);
    expect(prune("d".repeat(64))().events).toHaveLength(2);
  });

  it("takes nothing in once the run is finishing", () => {
    const run = started();
    untilAdmitted(run, "t1");
    run.dispatch({ at: run.at, type: "finish", reason: "enough" });
    expect(() => enqueue(run, "late")).toThrow(/finishing/);
  });
});

/** Works until this trial is admitted and nothing of it runs. */
function untilAdmitted(run: SimulatedRun, trial: string): void {
  for (let step = 0; step < 500 && run.state.trials[trial] === undefined; step++) run.work(1);
}

describe("a trial that waits", () => {
  it("is cancelled: it has used its trial, and the run goes on", () => {
    const run = started();
    untilAdmitted(run, "t1");
    run.dispatch({ at: run.at, type: "cancel_trial", trial: "t1", reason: "not that" });
    expect(run.state.trials["t1"]).toMatchObject({ phase: "ended", status: "cancelled", reason: "not that" });
    expect(run.state.measurements).toEqual({});
    expect(Object.values(run.state.plans)).toMatchObject([{ status: "cancelled" }]);
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", openTrials: [], statuses: { cancelled: 1 }, budget: { spent: { trials: 4 } } });
  });

  it("is not cancelled while something of it runs, nor once it has ended, nor what is no searched trial", () => {
    const run = started();
    untilAdmitted(run, "t1");
    const cancel = (trial: string) => () => decide(run.state, { at: 1, type: "cancel_trial", trial, reason: "r" });
    const [measurement = ""] = Object.keys(run.state.measurements);
    run.dispatch({ at: run.at, type: "start_attempt", measurement });
    expect(cancel("t1")).toThrow(/nothing runs.*being measured/);
    expect(cancel("t0")).toThrow(/searched trial/);
    expect(cancel("toString")).toThrow(/searched trial/);
    run.work();
    expect(cancel("t1")).toThrow(/run that is not over/);
  });
});

function candidateBaseline(): {
  candidate: ReturnType<typeof candidateOf>["reference"];
  manifest: ReturnType<typeof candidateOf>["manifest"];
} {
  const { reference, manifest } = candidateOf("baseline");
  return { candidate: reference, manifest };
}
