import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../tests/support/configuration.js";
import { proposal, SimulatedRun, type World } from "../../../tests/support/simulated-run.js";
import type { StoredRunEvent } from "./events.js";
import { project } from "./projection.js";

const environment = testEnvironment({ promotion: { rule: "any", confirmations: 1, level: 0.05, minimumGain: null } });

/** Values by subject; what is named is interrupted the first time. */
function world(values: Readonly<Record<string, number>>, interrupted: readonly string[] = []): World {
  const pending = new Set(interrupted);
  return {
    answer: (call) => proposal(call),
    measure: (subject, seed) => {
      const failing = pending.delete(subject);
      return failing ? "interrupted" : { value: (values[subject] ?? 0) + (seed % 7) };
    },
  };
}

function simulated(scripted: World, name = "one", at = 1000): readonly StoredRunEvent[] {
  const configuration = testConfiguration({
    environment,
    run: name,
    budget: { trials: 4, costUsd: null, tokens: null, computeMs: null, wallMs: null },
  });
  const run = new SimulatedRun(configuration, scripted);
  run.at = at;
  run.work();
  return run.events;
}

const values = { t1: 100, t2: 300, t3: 200, t4: 50 };

describe("the projection of a run", () => {
  const events = simulated(world(values));

  it("is the same under another name, at another time, and with interrupted attempts", () => {
    const other = simulated(world(values, ["t0", "t2", "t3"]), "two", 99_000);
    expect(other.length).toBeGreaterThan(events.length);
    expect(project(other)).toEqual(project(events));
  });

  it("is another one when a value, a decision or its place is", () => {
    const projected = project(events);
    expect(project(simulated(world({ ...values, t3: 201 })))).not.toEqual(projected);
    for (const type of [
      "measurement.requested",
      "attempt.ended",
      "stage.ended",
      "trial.admitted",
      "trial.ended",
      "leader.changed",
      "call.requested",
      "plan.proposed",
      "run.finished",
    ]) {
      const last = events.findLastIndex((event) => event.type === type);
      expect(last, type).toBeGreaterThan(0);
      expect(project(events.toSpliced(last, 1)), type).not.toEqual(projected);
    }
    const ends = events.flatMap((event, index) => (event.type === "trial.ended" ? [index] : []));
    const [first = 0, second = 0] = ends.slice(1);
    const swapped = events.with(first, events[second] as StoredRunEvent).with(second, events[first] as StoredRunEvent);
    expect(project(swapped)).not.toEqual(projected);
  });

  it("holds no time, no usage and no host", () => {
    expect(JSON.stringify(project(events))).not.toContain("cpuModel");
    // The configuration holds limits, which are times of their own kind.
    const text = JSON.stringify(project(events).slice(1));
    for (const word of ['"at"', "usage", "wallMs", "cpuMs", "epoch", '"attempt"', "guarantees"]) expect(text).not.toContain(word);
  });
});
