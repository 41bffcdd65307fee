import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../tests/support/configuration.js";
import { proposal, SimulatedRun } from "../../tests/support/simulated-run.js";
import { activeTime } from "../core/harness/state.js";
import { changedBudget } from "./budget-change.js";

const promotion = { rule: "any", confirmations: 3, level: 0.05, minimumGain: null } as const;

function searching(): SimulatedRun {
  const run = new SimulatedRun(testConfiguration({ environment: testEnvironment({ promotion }), promotion }), {
    answer: (call, round) => proposal(`${call}/${round}`),
    measure: (subject) => ({ value: Number(subject.slice(1)) }),
  });
  while (run.state.searchTrialsEnded < 2) run.work(1);
  return run;
}

const more = { caps: { wallMs: { more: 500 }, trials: { more: 3 } }, stop: {} };

describe("a cap on top of what is spent", () => {
  it("counts the time of an owner that is still alive, or whose end a fork's record does not reach", () => {
    const { state } = searching();
    expect(state.spanStartedAt).not.toBeNull();
    const spent = activeTime(state, state.lastAt);
    expect(spent).toBeGreaterThan(state.activeMs);
    expect(changedBudget(state, more).budget).toMatchObject({ wallMs: spent + 500, trials: 5 });
  });

  it("counts no time after the end of a run that is over", () => {
    const run = searching();
    run.work();
    expect(changedBudget(run.state, more).budget).toMatchObject({ wallMs: run.state.activeMs + 500, trials: 13 });
  });
});
