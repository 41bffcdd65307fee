import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../../tests/support/configuration.js";
import { proposal, SimulatedRun, type World } from "../../../../tests/support/simulated-run.js";
import type { EventData } from "../../protocol/events.js";
import { project } from "../../protocol/projection.js";
import type { ForkConfiguration, RunConfiguration } from "../../protocol/run.js";
import { replay } from "../evolve.js";
import { configurationOf, initialState } from "../state.js";

const promotion = { rule: "any", confirmations: 3, level: 0.05, minimumGain: null } as const;
const nothing = { trials: 0, costUsd: 0, tokens: 0, computeMs: 0 };
const rising: World = {
  answer: (call, round) => proposal(`${call}/${round}`),
  measure: (subject) => ({ value: Number(subject.slice(1)) }),
};
const caps = (trials: number, wallMs: number | null = null) => ({ trials, costUsd: null, tokens: null, computeMs: null, wallMs });

function started(changes: Partial<RunConfiguration> = {}, world: World = rising, remeasureEvery = 0): SimulatedRun {
  const environment = testEnvironment({ promotion, noise: { calibrate: 3, remeasureEvery } });
  return new SimulatedRun(testConfiguration({ environment, promotion, budget: caps(8), ...changes }), world);
}

/** The record of this run becomes a fork's. */
function fork(run: SimulatedRun, changes: Partial<ForkConfiguration> = {}): void {
  const {
    run: _name,
    researchers,
    alternates,
    researcherSettings,
    callReservations,
    budget,
    stop,
    seed,
    parallel,
    host,
  } = configurationOf(run.state);
  const own = { run: "fork", researchers, alternates, researcherSettings, callReservations, budget, stop, seed, parallel, host };
  const from: EventData<"run.forked">["from"] = { run: "test", sequence: run.state.version, chain: "a".repeat(64), trial: null };
  run.at += 1_000_000;
  run.dispatch({ at: run.at, type: "fork", from, configuration: { ...own, ...changes }, reason: "why not", afterHeldoutLook: null });
}

function workUntil(run: SimulatedRun, holds: () => boolean): void {
  while (!holds()) {
    const before = run.events.length;
    run.work(1);
    if (run.events.length === before) throw new Error("the run came to its end");
  }
}

describe("a fork", () => {
  it("inherits what is spent, and closes what was open as cancelled, which its source pays for", () => {
    const run = started({ parallel: 3, callReservations: { "*": { costUsd: 1, tokens: 100, computeMs: 0 } } });
    workUntil(run, () => run.state.openTrials.length > 0 && run.state.searchTrialsEnded > 0);
    run.dispatch({ at: run.at, type: "advance" });
    expect([Object.keys(run.state.calls), run.state.openTrials]).toEqual([["c3"], ["t2"]]);
    const [calls, trials] = [Object.keys(run.state.calls), [...run.state.openTrials]];
    const { activeMs, spanStartedAt, lastAt } = run.state;
    const spent = { ...run.state.budget.spent };
    const before = run.events.length;
    fork(run, { budget: caps(12), parallel: 1, seed: 99 });
    const added = run.events.slice(before);
    expect(added[0]?.type).toBe("run.forked");
    expect(added.flatMap((event) => (event.type === "call.failed" ? [[event.data.call, event.data.kind, event.data.usage]] : []))).toEqual(
      calls.map((call) => [call, "cancelled", nothing]),
    );
    expect(added.flatMap((event) => (event.type === "trial.ended" ? [[event.data.trial, event.data.status]] : []))).toEqual(
      trials.map((trial) => [trial, "cancelled"]),
    );
    const active = activeMs + lastAt - (spanStartedAt ?? lastAt);
    expect(run.state).toMatchObject({
      phase: "searching",
      activeMs: active,
      openTrials: [],
      calls: {},
      budget: { spent, reserved: nothing },
      configuration: { run: "fork", seed: 99, parallel: 1, budget: { trials: 12 }, organization: { name: "tree" } },
      forkedFrom: {
        run: "test",
        sequence: before,
        afterTrials: run.state.searchTrialsEnded - trials.length,
        inherited: { ...spent, activeMs: active },
      },
    });
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", reason: "budget: trials", budget: { spent: { trials: 12 } } });
    expect(replay(initialState(), run.stored())).toEqual(run.state);
  });

  it("of a serial run between two trials finds what its source finds, with the same seed and caps", () => {
    const whole = started();
    whole.work();
    const forked = started();
    workUntil(forked, () => forked.state.searchTrialsEnded === 4);
    fork(forked);
    forked.work();
    expect(project(forked.events).filter(({ type }) => type !== "run.forked")).toEqual(project(whole.events));
  });

  it("makes an open re-measurement of the baseline again", () => {
    const run = started({}, rising, 2);
    workUntil(run, () => Object.values(run.state.measurements).some(({ reason }) => reason === "remeasurement"));
    const [measurement] = Object.keys(run.state.measurements);
    run.dispatch({ at: run.at, type: "start_attempt", measurement: measurement ?? "" });
    fork(run);
    expect(run.state.measurements).toMatchObject({ [measurement ?? ""]: { running: false, attempt: 1, attempts: 0 } });
    expect(run.state.budget.reserved).toEqual(nothing);
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", remeasurements: [{ measurement }, {}, {}, {}] });
  });

  it("opens sessions that were driven here anew, and lets those from outside go", () => {
    const run = started({ organization: { name: "sessions", configuration: { sessions: 1 } } });
    workUntil(run, () => Object.keys(run.state.sessions).length === 1);
    run.dispatch({ at: run.at, type: "open_session", role: "generalist", researcher: "mcp", base: "t0", reopens: null });
    const before = run.events.length;
    fork(run);
    expect(run.events.slice(before).map(({ type }) => type)).toEqual(["run.forked", "session.interrupted", "session.closed"]);
    run.dispatch({ at: run.at, type: "open_span", epoch: 2, previousEndedAt: null, drives: true });
    run.work(1);
    expect(run.events.findLast(({ type }) => type === "session.opened")?.data).toMatchObject({ session: "s3", reopens: "s1" });
  });

  it("has a wake-up of its own for its wall clock", () => {
    const run = started({ budget: caps(8, 500_000) });
    workUntil(run, () => run.state.searchTrialsEnded === 2);
    fork(run, { budget: caps(8, 700_000) });
    expect(run.state.wakeUps).toEqual({ "wall-budget-2": { dueAtActiveMs: 700_000 } });
  });

  it("goes on from an end, a pause or a cancellation, where its caps leave room", () => {
    const ended = started();
    ended.work();
    expect(() => fork(ended)).toThrow(/--max-trials/);
    fork(ended, { budget: caps(9) });
    ended.work();
    expect(ended.state).toMatchObject({ phase: "finished", searchTrialsEnded: 9, leader: { trial: "t9" } });
    for (const type of ["pause", "cancel"] as const) {
      const run = started();
      workUntil(run, () => run.state.searchTrialsEnded === 3);
      run.dispatch({ at: run.at, type, reason: "because" });
      fork(run);
      run.work();
      expect(run.state).toMatchObject({ phase: "finished", budget: { spent: { trials: 8 } } });
    }
  });

  it("is refused before there is anything to inherit, and at another place than the record's end", () => {
    const young = started();
    young.work(3);
    expect(() => fork(young)).toThrow(/nothing to inherit/);
    const run = started();
    workUntil(run, () => run.state.searchTrialsEnded === 1);
    const from = { run: "test", sequence: 5, chain: "a".repeat(64), trial: null };
    const { configuration } = run;
    expect(() =>
      run.dispatch({ at: run.at, type: "fork", from, configuration: { ...configuration }, reason: "", afterHeldoutLook: null }),
    ).toThrow(/a fork at event/);
  });
});

describe("a record that is forked anywhere", () => {
  it("keeps to its caps, ends every trial once, and is the same when it is replayed", () => {
    const shape = fc.record({
      parallel: fc.integer({ min: 1, max: 4 }),
      steps: fc.nat(120),
      trials: fc.integer({ min: 1, max: 8 }),
      seed: fc.nat(999),
    });
    fc.assert(
      fc.property(shape, ({ parallel, steps, trials, seed }) => {
        const run = started({ parallel, budget: caps(trials) }, rising, 2);
        run.work(steps);
        fc.pre(run.state.noise !== null);
        const cap = run.state.budget.spent.trials + 3;
        fork(run, { budget: caps(cap), seed });
        expect(run.state.budget.reserved).toEqual(nothing);
        run.work(5000, () => expect(run.state.budget.spent.trials + run.state.budget.reserved.trials).toBeLessThanOrEqual(cap));
        const ends = run.events.flatMap((event) => (event.type === "trial.ended" ? [event.data.trial] : []));
        expect(new Set(ends).size).toBe(ends.length);
        expect(run.state).toMatchObject({ phase: "finished", budget: { spent: { trials: cap } }, openTrials: [] });
        expect(replay(initialState(), run.stored())).toEqual(run.state);
      }),
      { numRuns: 60 },
    );
  });
});
