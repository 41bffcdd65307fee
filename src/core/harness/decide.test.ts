import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../tests/support/configuration.js";
import { candidateOf, proposal, SimulatedRun, type World } from "../../../tests/support/simulated-run.js";
import type { Answer } from "../protocol/commands.js";
import { RefusedError } from "../protocol/errors.js";
import type { RunConfiguration } from "../protocol/run.js";
import { chanceOfKeep } from "../statistics/saturation.js";
import { due } from "./due.js";
import { proposalView } from "./views.js";

/** Values by the order of candidates: t0 is 1, t1 is 2 … unless the script says otherwise. */
function world(script: Partial<World> = {}): World {
  return {
    answer: (call, round) => proposal(`${call}/${round}`),
    measure: (subject, seed) => ({ value: Number(subject.slice(1)) + 1 + (seed % 10) / 1000 }),
    ...script,
  };
}

function started(script: Partial<World> = {}, changes: Partial<RunConfiguration> = {}): SimulatedRun {
  return new SimulatedRun(testConfiguration(changes), world(script));
}

/** Works until the first event of a type, and returns the run. */
function until(run: SimulatedRun, type: string): SimulatedRun {
  for (let step = 0; step < 2000 && run.events.at(-1)?.type !== type; step++) {
    const before = run.events.length;
    run.work(1);
    if (run.events.slice(before).some((event) => event.type === type)) return run;
    if (run.events.length === before) break;
  }
  return run;
}

const types = (run: SimulatedRun): string[] => run.events.map((event) => event.type);
const rule = (name: "any" | "threshold" | "confirmed", minimumGain: number | null = null): Partial<RunConfiguration> => {
  const promotion = { rule: name, confirmations: 3, level: 0.05, minimumGain };
  return { environment: testEnvironment({ promotion }), promotion };
};

describe("a start", () => {
  it("makes the baseline's repetitions due on different seeds, the first on the environment's", () => {
    const run = started();
    const seeds = run.events.flatMap((event) => (event.type === "measurement.requested" ? [event.data.seed] : []));
    expect(seeds[0]).toBe(7);
    expect(new Set(seeds).size).toBe(3);
    expect(due(run.state, run.at)).toEqual([{ kind: "measurement", measurement: "m1" }]);
  });

  it("is refused the second time", () => {
    const run = started();
    expect(() =>
      run.dispatch({
        at: run.at,
        type: "start",
        configuration: testConfiguration(),
        baseline: candidateOf("b").reference,
        references: [],
        queue: [],
      }),
    ).toThrow(RefusedError);
  });
});

describe("calibration", () => {
  it("cancels the run when the baseline fails", () => {
    const run = started({ measure: () => ({ status: "crashed" }) });
    run.work();
    expect(run.state.phase).toBe("cancelled");
    expect(run.state.reason).toContain("calibration failed");
  });

  it("refuses confirmed where neither seeds nor records tell anything, and says what to do", () => {
    const run = started({ measure: () => ({ value: 1 }) });
    run.work();
    expect(run.state.phase).toBe("cancelled");
    expect(run.state.reason).toContain("minimum_gain");
  });

  it("records a deterministic baseline as such under any", () => {
    const run = started({ measure: (subject) => ({ value: Number(subject.slice(1)) }) }, rule("any"));
    run.work();
    expect(run.state.noise).toMatchObject({ deterministic: true, sd: 0, n: 3 });
  });
});

describe("promotion", () => {
  it("under confirmed makes a better trial provisional and measures candidate and leader in turn on fresh seeds", () => {
    const run = until(started(), "trial.provisional");
    const requested = run.events.flatMap((event) =>
      event.type === "measurement.requested" && event.data.trial === "t1" ? [event.data] : [],
    );
    expect(requested.map(({ reason, subject }) => `${reason} ${subject}`)).toEqual([
      "first t1",
      ...Array(3).fill(["confirmation t1", "confirmation_of_leader t0"]).flat(),
    ]);
    const seeds = requested.map(({ seed }) => seed);
    expect(seeds[1]).toBe(seeds[2]);
    expect(new Set(seeds).size).toBe(4);
    expect(run.state.leader?.trial).toBe("t0");
  });

  it("keeps what fresh seeds confirm, with an estimate that leaves the first measurement out", () => {
    const run = until(
      started({
        measure: (subject, seed, reason) => ({ value: (subject === "t0" ? 1 : 2) + (seed % 7) / 1000 + (reason === "first" ? 50 : 0) }),
      }),
      "leader.changed",
    );
    run.work(40);
    const changed = run.events.find((event) => event.type === "leader.changed" && event.data.cause === "promotion");
    expect(changed?.type === "leader.changed" ? changed.data.estimate.score : null).toBeCloseTo(2, 1);
    expect(run.state.trials.t1?.values?.score).toBeGreaterThan(50);
  });

  it("discards what fresh seeds do not confirm", () => {
    const run = started({ measure: (_subject, seed, reason) => ({ value: (seed % 97) / 97 + (reason === "first" ? 5 : 0) }) });
    run.work();
    expect(run.state.statuses.keep ?? 0).toBe(0);
    expect(run.state.keptUnderAny).toBeGreaterThan(0);
  });

  it("discards a trial that crashes on a fresh seed", () => {
    const run = started({
      measure: (subject, seed, reason) =>
        reason === "confirmation" ? { status: "crashed" } : { value: Number(subject.slice(1)) + (seed % 5) / 100 },
    });
    run.work();
    expect(run.state.statuses).toEqual({ discard: 10 });
    expect(run.state.trials.t1?.reason).toContain("a confirmation ended crashed");
  });

  it("under threshold wants more than the baseline's noise gives", () => {
    const noisy = (gain: number): SimulatedRun => {
      const run = started(
        { measure: (subject, seed) => ({ value: (seed % 10) / 10 + (subject === "t0" ? 0 : gain) }) },
        { ...rule("threshold"), budget: { trials: 1, costUsd: null, tokens: null, computeMs: null, wallMs: null } },
      );
      run.work();
      return run;
    };
    expect(noisy(0.2).state.statuses).toEqual({ discard: 1 });
    expect(noisy(50).state.statuses).toEqual({ keep: 1 });
  });

  it("under any keeps whatever is better, and nothing that is equal", () => {
    const run = started({ measure: () => ({ value: 1 }) }, rule("any"));
    run.work();
    expect(run.state.statuses).toEqual({ discard: 10 });
  });
});

describe("failures that are not the candidate's", () => {
  it("start an interrupted attempt again, then fail the trial as infrastructure", () => {
    const run = started(
      { measure: (_subject, seed, reason) => (reason === "first" ? "interrupted" : { value: 1 + (seed % 3) }) },
      { budget: { trials: 1, costUsd: null, tokens: null, computeMs: null, wallMs: null } },
    );
    run.work();
    expect(run.events.filter((event) => event.type === "attempt.started" && event.data.measurement === "m4")).toHaveLength(3);
    expect(run.state.statuses).toEqual({ infrastructure_error: 1 });
  });

  it("suspend the run when the evaluator fails twice, and go on after a resume", () => {
    let failures = 2;
    const run = started({
      measure: (subject, seed, reason) =>
        reason === "first" && failures-- > 0 ? "evaluator_failure" : { value: Number(subject.slice(1)) + (seed % 3) },
    });
    run.work();
    expect(run.state.phase).toBe("suspended");
    expect(run.state.statuses).toEqual({});
    expect(run.state.todo).toContain("not the candidate's fault");
    run.dispatch({ at: run.at, type: "resume", reason: "mended" });
    run.work();
    expect(run.state.phase).toBe("finished");
  });
});

describe("a researcher", () => {
  const unreadable: Answer = { kind: "unreadable", violations: [{ code: "not_json", message: "no JSON", path: null }] };

  it("is shown what was wrong, a bounded number of times, and then suspends the run instead of spinning", () => {
    const run = started({ answer: () => unreadable });
    run.work();
    expect(run.events.filter((event) => event.type === "call.refused")).toHaveLength(15);
    expect(run.state.phase).toBe("suspended");
    expect(run.state.budget.spent.trials).toBe(0);
  });

  it("gets the violations with the next round", () => {
    const run = until(started({ answer: (call, round) => (round === 1 ? unreadable : proposal(call)) }), "call.refused");
    expect(Object.values(run.state.calls)[0]).toMatchObject({ round: 2, violations: unreadable.violations });
    run.work();
    expect(run.state.phase).toBe("finished");
  });

  it("cannot propose the same candidate twice, nor one outside the surface", () => {
    const outside: Answer = { ...(proposal("x") as Extract<Answer, { kind: "proposal" }>), edited: ["evaluate.py"] };
    const run = started({ answer: (_call, round) => (round === 1 ? proposal("baseline") : round === 2 ? outside : "fail") });
    run.work();
    const codes = run.events.flatMap((event) => (event.type === "call.refused" ? event.data.violations.map(({ code }) => code) : []));
    expect(new Set(codes)).toEqual(new Set(["duplicate_candidate", "not_editable"]));
    expect(run.state.statuses).toEqual({});
  });

  it("that answers another kind than was asked for is refused", () => {
    const run = until(
      started({ answer: () => ({ kind: "plan", hypothesis: "h", expectedGain: null, respondsTo: [], commitment: {} }) }),
      "call.refused",
    );
    expect(run.state.callCounts.lastViolations[0]?.code).toBe("wrong_kind");
  });
});

describe("a person", () => {
  it("pauses: nothing is due, active time stands still, and resume goes on", () => {
    const run = until(started(), "trial.provisional");
    run.dispatch({ at: run.at, type: "pause", reason: "lunch" });
    const active = run.state.activeMs;
    expect(due(run.state, run.at + 3_600_000)).toEqual([]);
    run.at += 3_600_000;
    run.dispatch({ at: run.at, type: "resume", reason: "back" });
    expect(run.state.activeMs).toBe(active);
    run.work();
    expect(run.state.phase).toBe("finished");
  });

  it("finishes: what is open ends, nothing new starts", () => {
    const run = until(started(), "trial.provisional");
    run.dispatch({ at: run.at, type: "finish", reason: "enough" });
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", reason: "enough", searchTrialsEnded: 1 });
    expect(run.state.trials.t1?.status).toBe("keep");
  });

  it("cancels: open trials are cancelled and reservations are free", () => {
    const run = until(started(), "trial.provisional");
    run.dispatch({ at: run.at, type: "cancel", reason: "wrong data" });
    expect(run.state.phase).toBe("cancelled");
    expect(run.state.statuses).toEqual({ cancelled: 1 });
    expect(run.state.budget.reserved.computeMs).toBe(0);
    expect(due(run.state, run.at)).toEqual([]);
  });

  it("retracts the best: the last keep that stands leads again, and what stood on it is listed", () => {
    const run = started({}, rule("any"));
    run.work();
    const leader = run.state.leader?.trial ?? "";
    const before = run.state.keeps.at(-2) ?? "";
    run.dispatch({ at: run.at, type: "retract", trial: before, reason: "leak" });
    expect(run.state.leader?.trial).toBe(leader);
    const retracted = run.events.at(-1);
    const dependents = Object.values(run.state.trials)
      .filter((trial) => trial.base === before)
      .map((trial) => trial.id);
    expect(retracted?.type === "trial.retracted" ? retracted.data.dependents : []).toEqual(expect.arrayContaining(dependents));
    run.dispatch({ at: run.at, type: "retract", trial: leader, reason: "leak" });
    expect(run.state.leader?.trial).toBe(run.state.keeps.at(-1));
    const count = run.events.length;
    run.dispatch({ at: run.at, type: "retract", trial: leader, reason: "again" });
    expect(run.events).toHaveLength(count);
  });
});

describe("budgets", () => {
  it("stop a run at its wall clock, without counting a pause", () => {
    const run = started({}, { budget: { trials: null, costUsd: null, tokens: null, computeMs: null, wallMs: 3000 } });
    run.work();
    expect(run.state.phase).toBe("finished");
    expect(run.state.reason).toContain("wall-clock");
  });

  it("do not start what CPU time could not cover", () => {
    const run = started({}, { budget: { trials: null, costUsd: null, tokens: null, computeMs: 10_020, wallMs: null } });
    run.work();
    expect(run.state.budget.spent.computeMs).toBeLessThanOrEqual(10_020);
    expect(run.state.reason).toContain("computeMs");
  });

  /** Calls may use 100 tokens a round; what they do use is what the test says. */
  const tokens = (cap: number): Partial<RunConfiguration> => ({
    budget: { trials: 9, costUsd: null, tokens: cap, computeMs: null, wallMs: null },
    callReservations: { "*": { costUsd: 0, tokens: 100, computeMs: 0 } },
  });
  const refuse = (run: SimulatedRun, used: number): void => {
    const answer: Answer = { kind: "unreadable", violations: [{ code: "not_json", message: "no JSON", path: null }] };
    const output = candidateOf("a refused answer").reference;
    const usage = { trials: 0, costUsd: 0, tokens: used, computeMs: 0 };
    const [call = ""] = Object.keys(run.state.calls);
    const reference = { blob: output.blob, bytes: output.bytes };
    run.dispatch({ at: run.at, type: "answer_call", call, output: reference, answer, usage, model: null, traffic: null });
  };
  const refusals = (run: SimulatedRun): boolean[] =>
    run.events.flatMap((event) => (event.type === "call.refused" ? [event.data.final] : []));

  it("reserve every round of a call anew, and end it where there is no room for another", () => {
    const run = until(started({}, tokens(250)), "call.requested");
    expect(run.state.budget.reserved.tokens).toBe(100);
    refuse(run, 80);
    expect(run.state.budget).toMatchObject({ spent: { tokens: 80 }, reserved: { tokens: 100 } });
    refuse(run, 90);
    expect(refusals(run)).toEqual([false, true]);
    expect(run.state.budget).toMatchObject({ spent: { tokens: 170 }, reserved: { tokens: 0 } });
  });

  it("refuse a call that they do not cover, and say so", () => {
    const run = started({}, tokens(99));
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", reason: "budget: tokens, 99 is left and a call of draft may use 100" });
  });
});

describe("an end before the budget's", () => {
  const rising = { measure: (subject: string) => ({ value: Number(subject.slice(1)) }) };

  it("comes with the target, and not a trial later", () => {
    const run = started(rising, { ...rule("any"), stop: { target: 3, patience: null, saturation: null } });
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", reason: "target: score is 3, wanted was 3", leader: { trial: "t3" } });
    expect(run.state.searchTrialsEnded).toBe(3);
  });

  it("comes after so many trials without a keep, counted from the last one", () => {
    const falling = { measure: (subject: string) => ({ value: subject === "t2" ? 9 : -Number(subject.slice(1)) }) };
    const run = started(falling, { ...rule("any"), stop: { target: null, patience: 3, saturation: null } });
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", reason: "patience: 3 trials in a row brought no keep", leader: { trial: "t2" } });
    expect(run.state.searchTrialsEnded).toBe(5);
  });
});

describe("a search that is saturated", () => {
  const rareKeeps = { measure: (subject: string) => ({ value: ["t2", "t5"].includes(subject) ? 9 + Number(subject.slice(1)) : -1 }) };
  it("counts patience from the last keep that stands", () => {
    const run = started(rareKeeps, { ...rule("any"), budget, stop: { ...stop, patience: 9, saturation: null } });
    while (run.state.searchTrialsEnded < 12) run.work(1);
    expect(run.state.leader?.trial).toBe("t5");
    run.dispatch({ at: run.at, type: "retract", trial: "t5", reason: "leaks" });
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", searchTrialsEnded: 12, leader: { trial: "t2" } });
    expect(run.state.reason).toBe("patience: 9 trials in a row brought no keep");
  });

  const stop = { target: null, patience: null, saturation: { probability: 0.2, horizon: 10 } };
  const budget = { trials: 200, costUsd: null, tokens: null, computeMs: null, wallMs: null };

  it("ends at the first trial at which the chance of another keep is as small as was asked for", () => {
    const run = started(rareKeeps, { ...rule("any"), stop, budget });
    run.work();
    const { keepRecord, reason, phase, searchTrialsEnded } = run.state;
    expect(phase).toBe("finished");
    expect(reason).toMatch(/^saturation: the chance that the next 10 trials bring a keep is [\d.]+ %, wanted was more than 20 %$/);
    expect(keepRecord).toEqual({ trials: searchTrialsEnded, keeps: 2, keptPlaces: 7 });
    expect(chanceOfKeep(keepRecord, 10)).toBeLessThanOrEqual(0.2);
    expect(chanceOfKeep({ ...keepRecord, trials: keepRecord.trials - 1 }, 10)).toBeGreaterThan(0.2);
  });

  it("is no reason for a run that did not ask, and a smaller cap comes first", () => {
    const without = started(rareKeeps, { ...rule("any"), budget });
    without.work();
    expect(without.state.reason).toBe("budget: trials");
    const capped = started(rareKeeps, { ...rule("any"), stop, budget: { ...budget, trials: 22 } });
    capped.work();
    expect(capped.state.reason).toBe("budget: trials");
  });

  it("forgets a keep that was taken back, and a trial of which nothing was learnt", () => {
    const run = started(rareKeeps, { ...rule("any"), budget: { ...budget, trials: 6 } });
    run.work();
    run.dispatch({ at: run.at, type: "retract", trial: "t5", reason: "leaks" });
    expect(run.state.keepRecord).toEqual({ trials: 6, keeps: 1, keptPlaces: 2 });
    expect(run.state.keptAfterTrials).toBe(2);
    run.dispatch({ at: run.at, type: "retract", trial: "t2", reason: "leaks too" });
    expect(run.state.keptAfterTrials).toBe(0);
    const cancelled = until(started({}, { ...rule("any"), budget }), "call.answered");
    cancelled.dispatch({ at: cancelled.at, type: "cancel", reason: "enough" });
    expect(cancelled.state).toMatchObject({ statuses: { cancelled: 1 }, keepRecord: { trials: 0, keeps: 0, keptPlaces: 0 } });
  });
});

describe("a note of the operator", () => {
  it("is in every view from the next question on, the newest ten of them", () => {
    const run = until(started(), "run.calibrated");
    for (let note = 1; note <= 12; note++) run.dispatch({ at: run.at, type: "note", reason: `note ${note}` });
    expect(proposalView(run.state, "draft", "t0", run.at).notes).toEqual(Array.from({ length: 10 }, (_, index) => `note ${index + 3}`));
    run.work();
    expect(() => run.dispatch({ at: run.at, type: "note", reason: "too late" })).toThrow(RefusedError);
  });
});

describe("knowledge", () => {
  it("is committed once per key, however often it is asked for", () => {
    const run = until(started(), "trial.provisional");
    const commit = {
      at: run.at,
      type: "commit_knowledge",
      kind: "run-memory",
      key: "t1",
      sources: ["t1"],
      content: { blob: "0".repeat(64), bytes: 1 },
    } as const;
    run.dispatch(commit);
    run.dispatch(commit);
    expect(types(run).filter((type) => type === "knowledge.committed")).toHaveLength(1);
  });
});

describe("a session", () => {
  it("reserves its turns, submits by the same rules, and is billed at its reservation when it is interrupted", () => {
    const run = started({}, { budget: { trials: 5, costUsd: 1, tokens: null, computeMs: null, wallMs: null } });
    until(run, "run.calibrated");
    const { reference, manifest } = candidateOf("from a session");
    const at = run.at;
    run.dispatch({ at, type: "open_session", role: "arch", researcher: "scripted", base: "t0", reopens: null });
    run.dispatch({ at, type: "reserve_turn", session: "s1", reservation: { trials: 0, costUsd: 0.9, tokens: 0, computeMs: 0 } });
    expect(() =>
      run.dispatch({ at, type: "reserve_turn", session: "s1", reservation: { trials: 0, costUsd: 0.2, tokens: 0, computeMs: 0 } }),
    ).toThrow(RefusedError);
    run.dispatch({
      at,
      type: "submit",
      by: { session: "s1" },
      base: "t0",
      submission: {
        hypothesis: "h",
        expectedGain: null,
        respondsTo: [],
        commitment: {},
        candidate: reference,
        manifest,
        edited: ["a.txt"],
      },
    });
    run.dispatch({
      at,
      type: "close_session",
      session: "s1",
      reason: "crash",
      interrupted: true,
      usage: { trials: 0, costUsd: 0.9, tokens: 0, computeMs: 0 },
    });
    expect(types(run)).toContain("session.submitted");
    expect(run.state.budget).toMatchObject({ spent: { costUsd: 0.9 }, reserved: { costUsd: 0 } });
    expect(Object.values(run.state.trials).some((trial) => trial.hypothesis === "h")).toBe(true);
  });
});
