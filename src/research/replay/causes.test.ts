import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { testConfiguration } from "../../../tests/support/configuration.js";
import { proposal, SimulatedRun } from "../../../tests/support/simulated-run.js";
import { decide } from "../../core/harness/decide.js";
import { evolve } from "../../core/harness/evolve.js";
import { initialState } from "../../core/harness/state.js";
import type { Command, TimelessCommand } from "../../core/protocol/commands.js";
import type { EventType } from "../../core/protocol/events.js";
import { causesOf } from "./causes.js";

/** Nothing here is looked up in a blob. */
const blobs = {
  blob: (digest: string): never => {
    throw new RangeError(digest);
  },
  putBlob: (): never => {
    throw new RangeError("nothing is written");
  },
};

/** A run whose stages may use no more CPU time than this, and whose measurements use 4 ms each. */
function capped(computeMs: number): SimulatedRun {
  const budget = { trials: null, costUsd: null, tokens: null, computeMs, wallMs: null };
  const run = new SimulatedRun(testConfiguration({ budget }), {
    answer: (call, round) => proposal(`${call}/${round}`),
    measure: (subject, seed) => ({ value: Number(subject.slice(1)) + 1 + (seed % 10) / 1000 }),
  });
  run.work();
  return run;
}

/** The commands that may have caused the last event of a type, and those among them that give it again. */
function causesOfLast(run: SimulatedRun, type: EventType): { readonly found: TimelessCommand[]; readonly same: TimelessCommand[] } {
  const place = run.events.findLastIndex((event) => event.type === type);
  const state = initialState();
  for (const event of run.events.slice(0, place)) evolve(state, event);
  const ahead = run.events.slice(place);
  const found = causesOf({ state, ahead, blobs });
  const same = found.filter((command) => {
    const { events } = decide(state, { ...command, at: ahead[0]?.at ?? 0 } as Command);
    return (
      events.length > 0 &&
      events.every(({ type: again, data }, index) =>
        isDeepStrictEqual([ahead[index]?.type, ahead[index]?.data], [again, JSON.parse(JSON.stringify(data))]),
      )
    );
  });
  return { found, same };
}

describe("what may have caused an event", () => {
  it("knows a budget that is used up by the words that the decision wrote", () => {
    const run = capped(20_030);
    expect(run.state).toMatchObject({ phase: "finished", reason: "budget: computeMs" });
    expect(causesOfLast(run, "run.finishing").same).toContainEqual({ type: "exhaust", cap: "computeMs" });
  });

  it("knows a calibration that was not covered likewise", () => {
    const run = capped(20_004);
    expect(run.state).toMatchObject({ phase: "suspended", reason: "the computeMs budget does not cover the calibration" });
    expect(causesOfLast(run, "run.suspended").same).toContainEqual({ type: "exhaust", cap: "computeMs" });
  });

  it("is nothing for what no command begins with", () => {
    const run = capped(20_030);
    for (const type of ["trial.admitted", "plan.admitted", "run.calibrated", "leader.changed"] as const)
      expect(causesOfLast(run, type).found).toEqual([]);
  });
});
