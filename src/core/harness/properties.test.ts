import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../tests/support/configuration.js";
import { candidateOf, proposal, SimulatedRun, type World } from "../../../tests/support/simulated-run.js";
import type { Promotion } from "../protocol/environment.js";
import { RefusedError, UnknownRecordError } from "../protocol/errors.js";
import { parseEvent } from "../protocol/events.js";
import { parseStatus, UnknownStatusError } from "../protocol/status.js";
import { drawsOf } from "./draw.js";
import { replay } from "./evolve.js";
import { initialState } from "./state.js";

/** A world that is a function of one number: whatever is asked, it answers by hash. */
function worldOf(seed: number): World {
  const draws = drawsOf(seed);
  let asked = 0;
  return {
    answer: (call, round) => {
      const kind = draws.uniform("answer", asked++);
      if (kind < 0.1) return "fail";
      if (kind < 0.2) return { kind: "unreadable", violations: [{ code: "not_json", message: "scripted", path: null }] };
      if (kind < 0.3) return proposal("baseline");
      return proposal(`${call}/${round}`);
    },
    measure: (subject, measurementSeed, reason) => {
      const kind = draws.uniform("measure", asked++);
      if (reason !== "calibration") {
        if (kind < 0.15) return "interrupted";
        if (kind < 0.35) return { status: "crashed" };
        if (kind < 0.4) return { status: "timed_out" };
      }
      return { value: draws.uniform(`value/${subject}`, 0) + draws.uniform(`noise/${measurementSeed}/${subject}`, 0) * 0.1 };
    },
  };
}

const rules = fc.constantFrom("any", "threshold", "confirmed", "compare");

function simulate(seed: number, rule: Promotion["rule"], parallel: number, trials: number): SimulatedRun {
  const environment = testEnvironment({ promotion: { rule, confirmations: 3, level: 0.05, minimumGain: null } });
  return new SimulatedRun(
    testConfiguration({
      environment,
      promotion: environment.promotion,
      parallel,
      seed,
      budget: { trials, costUsd: null, tokens: null, computeMs: 10_000_000, wallMs: null },
    }),
    worldOf(seed),
  );
}

const runs = fc.record({
  seed: fc.nat(1_000_000),
  rule: rules,
  parallel: fc.integer({ min: 1, max: 4 }),
  trials: fc.integer({ min: 1, max: 12 }),
});

describe("whatever researchers and machines do", () => {
  it("never passes a budget, not even by what is in flight", () => {
    fc.assert(
      fc.property(runs, ({ seed, rule, parallel, trials }) => {
        const run = simulate(seed, rule, parallel, trials);
        run.work(5000, () => {
          expect(run.state.budget.spent.trials + run.state.budget.reserved.trials).toBeLessThanOrEqual(trials);
        });
        expect(run.state.budget.reserved).toEqual({ trials: 0, costUsd: 0, tokens: 0, computeMs: 0 });
      }),
      { numRuns: 60 },
    );
  });

  it("gives every trial exactly one terminal status, and never changes an ended one", () => {
    fc.assert(
      fc.property(runs, ({ seed, rule, parallel, trials }) => {
        const run = simulate(seed, rule, parallel, trials);
        const seen = new Map<string, string>();
        run.work(5000, () => {
          for (const trial of Object.values(run.state.trials)) {
            if (trial.phase !== "ended") continue;
            const now = JSON.stringify(trial.id === "t0" ? [trial.status, trial.values] : trial);
            expect(seen.get(trial.id) ?? now).toBe(now);
            seen.set(trial.id, now);
          }
        });
        const ends = run.events.filter((event) => event.type === "trial.ended").map((event) => event.data.trial);
        expect(new Set(ends).size).toBe(ends.length);
        expect(run.state.openTrials).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it("keeps only what is better by the rule in force", () => {
    fc.assert(
      fc.property(runs, ({ seed, rule, parallel, trials }) => {
        const run = simulate(seed, rule, parallel, trials);
        let leader = Number.NEGATIVE_INFINITY;
        run.work();
        for (const event of run.events) {
          if (event.type === "leader.changed") {
            expect(event.data.estimate.score).toBeGreaterThan(rule === "confirmed" ? Number.NEGATIVE_INFINITY : leader);
            leader = event.data.estimate.score ?? Number.NaN;
          }
          if (event.type === "trial.ended" && event.data.status === "keep" && event.data.trial !== "t0") {
            expect(event.data.leaderVerdict?.result).toBe("improved");
            if (rule !== "any") expect(event.data.leaderVerdict?.lower).toBeGreaterThan(0);
          }
        }
        expect(run.events.length).toBeGreaterThan(0);
      }),
      { numRuns: 60 },
    );
  });

  it("gives the live state when any prefix is replayed", () => {
    fc.assert(
      fc.property(runs, fc.nat(), ({ seed, rule, parallel, trials }, cut) => {
        const run = simulate(seed, rule, parallel, trials);
        const steps = cut % 60;
        run.work(steps);
        expect(replay(initialState(), run.stored())).toEqual(run.state);
      }),
      { numRuns: 60 },
    );
  });

  it("goes on after a replay as it would have gone on", () => {
    fc.assert(
      fc.property(fc.nat(1_000_000), fc.nat(40), (seed, steps) => {
        const whole = simulate(seed, "any", 1, 6);
        whole.work();
        const again = simulate(seed, "any", 1, 6);
        again.work(steps);
        Object.assign(again.state, JSON.parse(JSON.stringify(replay(initialState(), again.stored()))));
        again.work();
        expect(again.events.map((event) => event.type)).toEqual(whole.events.map((event) => event.type));
      }),
      { numRuns: 30 },
    );
  });
});

describe("a run that is extended as often as somebody likes", () => {
  const extended = fc.record({
    run: runs,
    more: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 3 }),
    cut: fc.nat(200),
  });

  it("keeps to its caps, ends every trial once, and is the same when any prefix is replayed", () => {
    fc.assert(
      fc.property(extended, ({ run: { seed, rule, parallel, trials }, more, cut }) => {
        const run = simulate(seed, rule, parallel, trials);
        const check = (): void => {
          const { budget, configuration } = run.state;
          expect(budget.spent.trials + budget.reserved.trials).toBeLessThanOrEqual(configuration?.budget.trials ?? 0);
        };
        run.work(5000, check);
        for (const each of more) {
          // A run that suspended, or whose calibration failed, is not extended.
          if (run.state.phase !== "finished") break;
          const budget = { ...run.configuration.budget, trials: run.state.budget.spent.trials + each, computeMs: null };
          run.dispatch({ at: run.at, type: "extend", budget, stop: run.configuration.stop, reason: "more", afterHeldoutLook: null });
          run.work(5000, check);
        }
        const ends = run.events.filter((event) => event.type === "trial.ended").map((event) => event.data.trial);
        expect(new Set(ends).size).toBe(ends.length);
        expect(run.state.budget.reserved).toEqual({ trials: 0, costUsd: 0, tokens: 0, computeMs: 0 });
        expect(replay(initialState(), run.stored())).toEqual(run.state);
        const stored = run.stored();
        const half = replay(initialState(), stored.slice(0, cut));
        expect(replay(JSON.parse(JSON.stringify(half)), stored.slice(cut))).toEqual(run.state);
      }),
      { numRuns: 40 },
    );
  });
});

/** An operator who says whatever comes to mind, as a function of one number; what is refused is no harm. */
function meddlesome(run: SimulatedRun, seed: number): () => void {
  const draws = drawsOf(seed);
  let said = 0;
  return () => {
    const at = run.at;
    const reason = "as it came to mind";
    const word = draws.pick("word", said, 12);
    const trial = `t${draws.pick("trial", said, run.state.counters.trial + 1)}`;
    const { reference, manifest } = candidateOf(`queued ${draws.pick("text", said, 4)}`);
    said += 1;
    const queued = { candidate: reference, manifest, edited: ["a.txt"], hypothesis: "h", submitter: "operator", move: {} };
    const [type] = [(["hold", "pin", "release", "cancel_trial", "retract"] as const)[word]];
    try {
      if (type !== undefined) run.dispatch({ at, type, trial, reason });
      else if (word === 5) run.dispatch({ at, type: "enqueue", before: null, reason, base: trial, ...queued });
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error;
    }
  };
}

describe("whatever the operator says of single trials", () => {
  it("the run comes to its end within its budget, and nothing starts from what was held or retracted when it was asked for", () => {
    fc.assert(
      fc.property(runs, ({ seed, rule, parallel, trials }) => {
        const run = simulate(seed, rule, parallel, trials);
        const meddle = meddlesome(run, seed);
        let seen = 0;
        run.work(5000, () => {
          for (const event of run.events.slice(seen)) {
            if (event.type !== "call.requested") continue;
            expect(run.state.steers[event.data.base]?.steer).not.toBe("held");
            expect(run.state.trials[event.data.base]?.retracted).toBe(false);
          }
          meddle();
          seen = run.events.length;
        });
        expect(["finished", "suspended"]).toContain(run.state.phase);
        expect(run.state.budget.spent.trials).toBeLessThanOrEqual(trials);
        if (run.state.phase === "finished") expect([run.state.openTrials, run.state.measurements]).toEqual([[], {}]);
        expect(replay(initialState(), run.stored())).toEqual(run.state);
      }),
      { numRuns: 120 },
    );
  });
});

describe("a record that this version does not know", () => {
  it("stops the replay", () => {
    expect(() => parseEvent({ sequence: 1, at: 0, type: "trial.teleported", version: 1, data: {} })).toThrow(UnknownRecordError);
    expect(() => parseEvent({ sequence: 1, at: 0, type: "run.paused", version: 99, data: { reason: "" } })).toThrow(UnknownRecordError);
    expect(() => parseEvent({ sequence: 1, at: 0, type: "run.paused", version: 1, data: { why: "" } })).toThrow(UnknownRecordError);
  });

  it("is an error as a status too", () => {
    expect(() => parseStatus("succeeded")).toThrow(UnknownStatusError);
  });
});

describe("the two ways in", () => {
  it("admit an unsolicited submission by the same rules", () => {
    const run = simulate(3, "any", 1, 5);
    run.work(12);
    const { reference, manifest } = candidateOf("pushed");
    const submission = {
      hypothesis: "pushed",
      expectedGain: 0.1,
      respondsTo: [],
      commitment: {},
      candidate: reference,
      manifest,
      edited: ["a.txt"],
    };
    run.dispatch({ at: run.at, type: "submit", by: { submitter: "a person" }, base: "t0", submission });
    const trial = Object.values(run.state.trials).find((each) => each.hypothesis === "pushed");
    expect(trial?.candidate.blob).toBe(reference.blob);
    run.dispatch({
      at: run.at,
      type: "submit",
      by: { submitter: "a person" },
      base: "t0",
      submission: { ...submission, edited: ["../evaluate.py"] },
    });
    expect(run.events.at(-1)?.type).toBe("plan.refused");
    run.work();
    expect(run.state.budget.spent.trials).toBeLessThanOrEqual(5);
  });

  it("refuse a command that the state does not allow, and change nothing", () => {
    const run = simulate(3, "any", 1, 2);
    run.work();
    const before = JSON.stringify(run.state);
    expect(() => run.dispatch({ at: run.at, type: "cancel", reason: "too late" })).toThrow(RefusedError);
    expect(() => run.dispatch({ at: run.at, type: "retract", trial: "t99", reason: "no such" })).toThrow(RefusedError);
    expect(JSON.stringify(run.state)).toBe(before);
  });
});
