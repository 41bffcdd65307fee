import { describe, expect, it } from "vitest";
import { testConfiguration } from "../../../tests/support/configuration.js";
import { initialState, type RunState } from "../../core/harness/state.js";
import { saturationOf, saturationText } from "./saturation-summary.js";
import { statusText } from "./status-text.js";
import { summarize } from "./summary.js";

function stateWith(keepRecord: RunState["keepRecord"], probability: number | null = null): RunState {
  const saturation = probability === null ? null : { probability, horizon: 10 };
  const configuration = testConfiguration({ stop: { target: null, patience: null, saturation } });
  return { ...initialState(), configuration, keepRecord, searchTrialsEnded: keepRecord.trials };
}

describe("the chance of another gain in a report", () => {
  it("is said with what it stands on, and that it extrapolates", () => {
    const saturation = saturationOf(stateWith({ trials: 60, keeps: 2, keptPlaces: 30 }, 0.05));
    expect(saturation).toEqual({ chance: expect.closeTo(0.22, 3), horizon: 10, trials: 60, keeps: 2, endsAt: 0.05 });
    expect(saturationText({ saturation })).toBe(
      "22 % that 10 more trials bring a visible gain (estimated from 2 keeps in 60 trials, the later ones counting more; an extrapolation: another researcher may find what these did not); the run ends at 5 %",
    );
  });

  it("is said to be not known where the run would end by it, and not at all before there is something to say", () => {
    const early = { trials: 3, keeps: 1, keptPlaces: 1 };
    expect(saturationText({ saturation: saturationOf(stateWith(early, 0.05)) })).toBe(
      "that 10 more trials bring a visible gain: not known yet, 3 of the 20 trials that it takes have ended; the run ends at 5 %",
    );
    expect(statusText(summarize(stateWith(early, 0.05), 0))).toContain("Chance     that 10 more trials");
    expect(statusText(summarize(stateWith(early), 0))).not.toContain("Chance");
    expect(statusText(summarize(stateWith({ trials: 60, keeps: 2, keptPlaces: 30 }), 0))).toContain("Chance     22 %");
    expect(saturationText({ saturation: saturationOf(initialState()) })).toBe("");
  });
});
