import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../../tests/support/configuration.js";
import { proposal, SimulatedRun } from "../../../../tests/support/simulated-run.js";
import type { RunConfiguration } from "../../protocol/run.js";
import { due } from "../due.js";
import { replay } from "../evolve.js";
import { initialState } from "../state.js";

const reservation = { costUsd: 1, tokens: 100, computeMs: 0 };
const whole = { trials: 0, costUsd: 1, tokens: 100, computeMs: 0 };

/** A run whose only open calls are these first ones, each of which costs money. */
function asking(calls: number, changes: Partial<RunConfiguration> = {}): SimulatedRun {
  const run = new SimulatedRun(testConfiguration({ callReservations: { "*": reservation }, parallel: calls, ...changes }), {
    answer: (call, round) => proposal(`${call}/${round}`),
    measure: (subject, seed) => ({ value: Number(subject.slice(1)) + (seed % 10) / 1000 }),
  });
  while (run.state.phase !== "searching") run.work(1);
  for (let call = 0; call < calls; call++) run.dispatch({ at: run.at, type: "advance" });
  expect(Object.keys(run.state.calls)).toHaveLength(calls);
  return run;
}

const say = (run: SimulatedRun, type: "pause" | "resume"): void => run.dispatch({ at: run.at, type, reason: "the test" });
const own = (run: SimulatedRun, epoch = 2, drives = true): void =>
  run.dispatch({ at: run.at, type: "open_span", epoch, previousEndedAt: run.at, drives });
const fail = (run: SimulatedRun, call: string, kind: "quota_exhausted" | "researcher_failed"): void =>
  run.dispatch({ at: run.at, type: "fail_call", call, kind, message: "no", todo: "", usage: whole, model: null, traffic: null });
const failures = (run: SimulatedRun): unknown[] =>
  run.events.flatMap((event) =>
    event.type === "call.failed" ? [[event.data.call, event.data.round, event.data.kind, event.data.usage.costUsd]] : [],
  );

describe("a question that is out when its owner goes", () => {
  it("is billed once, and asked again, where the owner died", () => {
    const run = asking(1);
    own(run);
    expect(failures(run)).toEqual([["c1", 1, "infrastructure", 1]]);
    expect(run.state.calls["c1"]).toMatchObject({ round: 2, reservation: { costUsd: 1 } });
  });

  it("is billed once, and asked again, where the run was paused first and its owner left before an answer came", () => {
    const run = asking(1);
    say(run, "pause");
    own(run);
    expect(failures(run)).toEqual([["c1", 1, "infrastructure", 1]]);
    // One more that comes and goes without asking anything changes nothing.
    own(run, 3);
    say(run, "resume");
    expect(failures(run)).toHaveLength(1);
    expect(run.state.budget.spent).toMatchObject({ costUsd: 1, tokens: 100 });
    expect(run.state.calls["c1"]).toMatchObject({ round: 2 });
    run.work();
    expect(run.state.budget.spent.costUsd).toBe(1);
    expect(replay(initialState(), run.stored())).toEqual(run.state);
  });

  it.each(["pause", "note", null] as const)("is billed once where a person's word came before the next owner: %s", (type) => {
    const run = asking(1);
    for (const epoch of [2, 3]) own(run, epoch, false);
    if (type !== null) run.dispatch({ at: run.at, type, reason: "the test" });
    own(run, 4);
    if (type === "pause") say(run, "resume");
    expect(failures(run)).toEqual([["c1", 1, "infrastructure", 1]]);
    expect(run.state.calls["c1"]).toMatchObject({ round: 2 });
    // The one that drives asks; where it dies, that is billed too.
    own(run, 5);
    expect(failures(run)).toHaveLength(2);
  });

  it("is billed where another call suspended the run, whose own round was told", () => {
    const run = asking(2);
    fail(run, "c1", "quota_exhausted");
    expect(run.state.phase).toBe("suspended");
    own(run);
    expect(failures(run)).toEqual([
      ["c1", 1, "quota_exhausted", 1],
      ["c2", 1, "infrastructure", 1],
    ]);
  });

  it("is not billed again where its end was told during the pause", () => {
    const run = asking(2);
    say(run, "pause");
    fail(run, "c1", "researcher_failed");
    const usage = { ...whole, costUsd: 0.25 };
    run.dispatch({
      at: run.at,
      type: "answer_call",
      call: "c2",
      output: { blob: "a".repeat(64), bytes: 1 },
      answer: proposal("came late"),
      usage,
      model: null,
      traffic: null,
    });
    own(run);
    say(run, "resume");
    expect(failures(run)).toEqual([["c1", 1, "researcher_failed", 1]]);
    expect(run.state.budget.spent.costUsd).toBe(1.25);
  });
});

describe("a last round that ends in vain during a pause", () => {
  const once = { callRounds: 1, refusedCalls: 1, attempts: 3, sessionTurns: 20, callWallMs: 60_000 };

  it.each(["suspend", "fail"] as const)(
    "leaves the run paused, and a resume gives it another try, where the environment says %s",
    (call) => {
      const environment = testEnvironment({ onExhausted: { attempt: "fail", call } });
      const run = asking(2, { environment, limits: once });
      say(run, "pause");
      fail(run, "c1", "researcher_failed");
      expect(run.state).toMatchObject({ phase: "paused", resumeTo: "searching", spanStartedAt: null, calls: { c2: { round: 1 } } });
      expect(due(run.state, run.at)).toEqual([]);
      say(run, "resume");
      run.work();
      expect(run.state).toMatchObject({ phase: "finished", reason: "budget: trials" });
    },
  );

  it("ends or suspends a run that goes on, as before", () => {
    const ended = (call: "suspend" | "fail"): string => {
      const run = asking(2, { environment: testEnvironment({ onExhausted: { attempt: "fail", call } }), limits: once });
      fail(run, "c1", "researcher_failed");
      return run.state.phase;
    };
    expect([ended("suspend"), ended("fail")]).toEqual(["suspended", "finishing"]);
  });
});
