import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../../tests/support/configuration.js";
import { proposal, SimulatedRun, type World } from "../../../../tests/support/simulated-run.js";
import type { BudgetLimits } from "../../protocol/budget.js";
import { RefusedError } from "../../protocol/errors.js";
import { type ProjectedEvent, project } from "../../protocol/projection.js";
import type { RunConfiguration, StopRule } from "../../protocol/run.js";
import { replay } from "../evolve.js";
import { initialState } from "../state.js";

const noStop: StopRule = { target: null, patience: null, saturation: null };
const caps = (changes: Partial<BudgetLimits>): BudgetLimits => ({
  trials: null,
  costUsd: null,
  tokens: null,
  computeMs: null,
  wallMs: null,
  ...changes,
});
const promotion = { rule: "any", confirmations: 3, level: 0.05, minimumGain: null } as const;
const rising: World = {
  answer: (call, round) => proposal(`${call}/${round}`),
  measure: (subject) => ({ value: Number(subject.slice(1)) }),
};

function started(changes: Partial<RunConfiguration>, world: World = rising): SimulatedRun {
  return new SimulatedRun(testConfiguration({ environment: testEnvironment({ promotion }), promotion, ...changes }), world);
}

function finished(changes: Partial<RunConfiguration>, world?: World): SimulatedRun {
  const run = started(changes, world);
  run.work();
  expect(run.state.phase).toBe("finished");
  return run;
}

function extend(run: SimulatedRun, budget: BudgetLimits, stop: StopRule = noStop, afterHeldoutLook: string | null = null): string[] {
  const before = run.events.length;
  run.dispatch({ at: run.at, type: "extend", budget, stop, reason: "more", afterHeldoutLook });
  return run.events.slice(before).map((event) => event.type);
}

/** What extending adds to a story, or leaves out of it, is taken away: all else must be the same. */
function science(run: SimulatedRun): ProjectedEvent[] {
  const ends = ["run.started", "run.finishing", "run.finished", "run.extended", "operator.acted"];
  return project(run.events).filter(({ type }) => !ends.includes(type));
}

describe("a finished run that is extended", () => {
  it("searches on under the new caps, and ends again", () => {
    const run = finished({ budget: caps({ trials: 3 }) });
    expect(extend(run, caps({ trials: 5 }))).toEqual(["operator.acted", "run.extended"]);
    expect(run.state).toMatchObject({ phase: "searching", reason: "more", configuration: { budget: { trials: 5 } } });
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", reason: "budget: trials", searchTrialsEnded: 5, leader: { trial: "t5" } });
    expect(run.state.extensions).toEqual([{ afterTrials: 3, reason: "more", afterHeldoutLook: null }]);
    expect(replay(initialState(), run.stored())).toEqual(run.state);
  });

  it("finds what a run with the larger budget finds, where it is serial and its world answers the same", () => {
    const whole = finished({ budget: caps({ trials: 9 }) });
    const parts = finished({ budget: caps({ trials: 4 }) });
    extend(parts, caps({ trials: 6 }));
    parts.work();
    extend(parts, caps({ trials: 9 }));
    parts.work();
    expect(science(parts)).toEqual(science(whole));
  });

  it("goes on from where a person ended it early, and counts what is spent", () => {
    const run = started({ budget: caps({ trials: 20 }) });
    while (run.state.searchTrialsEnded < 2) run.work(1);
    run.dispatch({ at: run.at, type: "finish", reason: "enough" });
    run.work();
    const { trials } = run.state.budget.spent;
    extend(run, caps({ trials: trials + 2 }));
    run.work();
    expect(run.state).toMatchObject({ phase: "finished", budget: { spent: { trials: trials + 2 } } });
  });

  it("has another wake-up for its wall clock, and the old one is gone", () => {
    const run = finished({ budget: caps({ trials: 3, wallMs: 1_000_000 }) });
    expect(Object.keys(run.state.wakeUps)).toEqual(["wall-budget"]);
    const { activeMs } = run.state;
    expect(extend(run, caps({ wallMs: activeMs + 500 }))).toEqual(["operator.acted", "run.extended", "wake_up.scheduled"]);
    expect(run.state.wakeUps).toEqual({ "wall-budget-2": { dueAtActiveMs: activeMs + 500 } });
    run.at += 300;
    run.work();
    expect(run.state.reason).toMatch(/^budget: wall-clock/);
    extend(run, caps({ wallMs: run.state.activeMs + 500 }));
    expect(Object.keys(run.state.wakeUps)).toEqual(["wall-budget-3"]);
    run.at += 600;
    run.work();
    expect(run.events.some((event) => event.type === "wake_up.fired" && event.data.wakeUp === "wall-budget-3")).toBe(true);
    expect(run.state).toMatchObject({ phase: "finished", reason: "budget: wall-clock" });
  });

  it("does not count the time between its end and its extension", () => {
    const run = finished({ budget: caps({ trials: 2 }) });
    const { activeMs } = run.state;
    run.at += 1_000_000;
    extend(run, caps({ trials: 3 }));
    run.work();
    expect(run.state.activeMs).toBeLessThan(activeMs + 1000);
  });

  it("counts patience from there on", () => {
    const falling: World = { ...rising, measure: (subject) => ({ value: -Number(subject.slice(1)) }) };
    const run = finished({ budget: caps({}), stop: { ...noStop, patience: 3 } }, falling);
    extend(run, caps({}), { ...noStop, patience: 2 });
    run.work();
    expect(run.state).toMatchObject({ searchTrialsEnded: 5, reason: "patience: 2 trials in a row brought no keep" });
  });
});

describe("an extension", () => {
  const refusal = (run: SimulatedRun, budget: BudgetLimits, stop?: StopRule): string => {
    const before = JSON.stringify(run.state);
    try {
      extend(run, budget, stop);
    } catch (error) {
      expect(error).toBeInstanceOf(RefusedError);
      expect(JSON.stringify(run.state)).toBe(before);
      return (error as Error).message;
    }
    return "";
  };

  it("is refused to a run that is cancelled, or that goes on anyway", () => {
    const run = started({ budget: caps({ trials: 3 }) });
    run.work(8);
    expect(refusal(run, caps({ trials: 9 }))).toContain("trialist resume");
    run.dispatch({ at: run.at, type: "cancel", reason: "wrong" });
    expect(refusal(run, caps({ trials: 9 }))).toContain("stays over");
  });

  it("is refused where the caps leave no room for one more trial, by the name of the option", () => {
    const run = finished({ budget: caps({ trials: 3 }) });
    expect(refusal(run, caps({ trials: 3 }))).toMatch(/a cap of 3, of which 3 is spent.*--max-trials/s);
    expect(refusal(run, caps({ trials: 2 }))).toContain("--max-trials");
    expect(refusal(run, caps({ wallMs: run.state.activeMs }))).toContain("--max-time");
    // The stages' limits are reserved before they start.
    expect(refusal(run, caps({ computeMs: 10_000 }))).toContain("--max-compute");
    expect(refusal(run, caps({ trials: 4, computeMs: 10_000_000 }))).toBe("");
  });

  it("is refused where money or tokens do not cover a question", () => {
    const run = finished({ budget: caps({ trials: 3 }), callReservations: { "*": { costUsd: 0.5, tokens: 100, computeMs: 0 } } });
    expect(refusal(run, caps({ costUsd: 0.4 }))).toContain("--max-cost");
    expect(refusal(run, caps({ tokens: 99 }))).toContain("--max-tokens");
    expect(refusal(run, caps({ costUsd: 0.5, tokens: 100 }))).toBe("");
  });

  it("is refused where the target is met, or the search is saturated: it would end at once", () => {
    const run = finished({ budget: caps({ trials: 30 }) });
    expect(refusal(run, caps({}), { ...noStop, target: 30 })).toContain("target: score is 30");
    expect(refusal(run, caps({}), { ...noStop, saturation: { probability: 0.999, horizon: 1 } })).toContain("saturation: the chance");
    expect(refusal(run, caps({ trials: 31 }), { ...noStop, target: 31 })).toBe("");
  });
});
