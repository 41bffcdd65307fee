import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../../tests/support/configuration.js";
import { proposal, SimulatedRun, type World } from "../../../../tests/support/simulated-run.js";
import { type Draw, drawsOf } from "../../harness/draw.js";
import { evolve, replay } from "../../harness/evolve.js";
import { initialState, type RunState } from "../../harness/state.js";
import { nothing } from "../../protocol/budget.js";
import type { Environment } from "../../protocol/environment.js";
import { RefusedError } from "../../protocol/errors.js";
import type { RunEvent, StoredRunEvent } from "../../protocol/events.js";
import { type TrialStatus, trialStatuses } from "../../protocol/status.js";
import type { Move } from "../organization.js";
import { organizationNamed } from "../registry.js";
import type { TreeFold } from "./fold.js";
import { tree } from "./index.js";

const blob = { blob: "0".repeat(64), bytes: 1 };
const direct = { bestAtView: null, bestAtSubmission: null };

/** A coin that always says the same and a pick that always takes one place. */
function rigged(coin: number, place = 0): Draw {
  return { uniform: () => coin, pick: (_name, _index, size) => Math.min(place, size - 1), seed: () => 0 };
}
const debugging = rigged(0);
const improving = rigged(0.999);

type Call = Extract<Move, { kind: "call" }>;

/** A run told event by event, without the harness's decisions. */
class Told {
  readonly state: RunState = initialState();
  private calls = 0;
  private trials = 0;

  constructor(configuration: Record<string, unknown> = {}, environment: Partial<Environment> = {}) {
    this.tell({
      type: "run.started",
      data: {
        configuration: testConfiguration({ environment: testEnvironment(environment), organization: { name: "tree", configuration } }),
      },
    });
    this.tell({
      type: "trial.admitted",
      data: {
        ...direct,
        trial: "t0",
        kind: "baseline",
        plan: null,
        candidate: { ...blob, manifest: true },
        base: null,
        parents: [],
        move: {},
        name: "baseline",
      },
    });
    this.measure("t0", 0.5);
    this.end("t0", "keep");
  }

  get fold(): TreeFold {
    return this.state.organization as TreeFold;
  }

  tell(event: RunEvent): void {
    evolve(this.state, { ...event, sequence: this.state.version + 1, at: this.state.version } as StoredRunEvent);
  }

  next(draw: Draw): Move {
    return tree.next(this.fold, this.state, draw);
  }

  /** Requests what the policy wants; it must be a call. */
  request(draw: Draw): { id: string; move: Call } {
    const move = this.next(draw);
    if (move.kind !== "call") throw new Error(`a call was expected, the policy wants to ${move.kind}`);
    this.calls += 1;
    const id = `c${this.calls}`;
    this.tell({
      type: "call.requested",
      data: {
        call: id,
        role: move.role,
        researcher: "r",
        view: blob,
        viewVersion: 0,
        base: move.base,
        comparator: move.comparator,
        expects: "proposal",
        plan: null,
        move: { ...move.detail },
        seed: 0,
        bestAtView: null,
        reservation: nothing,
      },
    });
    return { id, move };
  }

  answer(call: { id: string; move: Call }): string {
    this.tell({ type: "call.answered", data: { call: call.id, round: 1, output: blob, usage: nothing, model: null, traffic: null } });
    return this.admit(call.move.base, { ...call.move.detail }, call.move.comparator);
  }

  admit(base: string, move: Record<string, string | number | null>, comparator = base): string {
    this.trials += 1;
    const [trial, plan] = [`t${this.trials}`, `p${this.trials}`];
    this.tell({
      type: "plan.proposed",
      data: {
        plan,
        by: { submitter: "test" },
        base,
        parents: [base],
        respondsTo: [],
        hypothesis: "",
        expectedGain: null,
        commitment: {},
        comparator,
      },
    });
    this.tell({
      type: "trial.admitted",
      data: {
        ...direct,
        trial,
        kind: "search",
        plan,
        candidate: { blob: String(this.trials).padStart(64, "0"), bytes: 1, manifest: true },
        base,
        parents: [base],
        move,
        name: null,
      },
    });
    return trial;
  }

  measure(trial: string, value: number): void {
    const found = this.state.trials[trial];
    if (found !== undefined) found.values = { score: value };
  }

  end(trial: string, status: TrialStatus): void {
    this.tell({
      type: "trial.ended",
      data: { trial, status, stage: null, reason: "", bestAtEnd: null, comparatorVerdict: null, leaderVerdict: null, keptUnderAny: false },
    });
  }

  retract(trial: string): void {
    this.tell({ type: "trial.retracted", data: { trial, reason: "", dependents: [] } });
  }

  /** A whole step: request, answer, end. A number is the value of a valid trial. */
  step(outcome: number | TrialStatus, draw: Draw = improving): string {
    const trial = this.answer(this.request(draw));
    if (typeof outcome === "number") this.measure(trial, outcome);
    this.end(trial, typeof outcome === "number" ? "discard" : outcome);
    return trial;
  }
}

const draft = { kind: "call", role: "draft", base: "t0", comparator: "t0", detail: { stage: "draft" } };

describe("step 1: drafts first", () => {
  it("drafts from the baseline until there are enough, failed ones included", () => {
    const told = new Told({ drafts: 3 });
    for (const outcome of ["crashed", 0.6, "timed_out"] as const) {
      expect(told.next(debugging)).toEqual(draft);
      told.step(outcome, debugging);
    }
    expect(told.next(debugging)).not.toEqual(draft);
  });

  it("does not count what is no node", () => {
    const told = new Told({ drafts: 1 });
    for (const status of trialStatuses) {
      if (status !== "infrastructure_error" && status !== "cancelled") continue;
      told.step(status);
      expect(told.next(improving)).toEqual(draft);
    }
    const refused = told.request(improving);
    told.tell({
      type: "call.refused",
      data: {
        call: refused.id,
        round: 1,
        output: null,
        violations: [{ code: "x", message: "x", path: null }],
        final: false,
        usage: nothing,
        model: null,
        traffic: null,
      },
    });
    expect(told.next(improving)).not.toEqual(draft);
    told.tell({
      type: "call.refused",
      data: {
        call: refused.id,
        round: 2,
        output: null,
        violations: [{ code: "x", message: "x", path: null }],
        final: true,
        usage: nothing,
        model: null,
        traffic: null,
      },
    });
    expect(told.next(improving)).toEqual(draft);
    const failed = told.request(improving);
    told.tell({
      type: "call.failed",
      data: {
        call: failed.id,
        round: 1,
        kind: "no_answer",
        message: "",
        todo: "",
        final: true,
        usage: nothing,
        model: null,
        traffic: null,
      },
    });
    expect(told.next(improving)).toEqual(draft);
  });

  it("counts what is in flight, as a call and as a trial", () => {
    const told = new Told({ drafts: 2 });
    const [first, second] = [told.request(improving), told.request(improving)];
    expect(told.next(improving)).toEqual({ kind: "wait" });
    const trial = told.answer(first);
    expect(told.next(improving)).toEqual({ kind: "wait" });
    told.end(trial, "crashed");
    expect(told.next(improving)).toEqual({ kind: "wait" });
    told.end(told.answer(second), "crashed");
    // Nothing is open and nothing works: the serial rule, a draft beyond the number.
    expect(told.next(improving)).toEqual(draft);
  });
});

describe("step 2: a coin, then a buggy leaf", () => {
  it.each([
    ["preflight_failed", true],
    ["inadmissible", true],
    ["crashed", true],
    ["timed_out", true],
    ["over_budget", true],
    ["over_size", true],
    ["no_result", true],
    ["disqualified", true],
    ["gate_missed", false],
    ["keep", false],
    ["discard", false],
  ] as const)("%s: buggy is %s", (status, expected) => {
    const told = new Told({ drafts: 1 });
    const trial = told.answer(told.request(debugging));
    told.measure(trial, 0.7);
    told.end(trial, status);
    const move = told.next(debugging);
    expect(move.kind === "call" && move.role === "debug").toBe(expected);
  });

  it("takes a missed gate for a bug where the environment calls it a rule of validity", () => {
    for (const validity of [true, false]) {
      const told = new Told({ drafts: 1 }, { gates: [{ metric: "score", atLeast: 0.5, atMost: null, validity }] });
      const trial = told.answer(told.request(debugging));
      told.measure(trial, 0.1);
      told.end(trial, "gate_missed");
      expect(told.fold.debuggable).toEqual(validity ? [trial] : []);
    }
  });

  it("is taken below the probability and passed at it", () => {
    const told = new Told({ drafts: 2, debugProbability: 0.5 });
    const good = told.step(0.6);
    const bad = told.step("crashed");
    expect(told.next(rigged(0.4999))).toMatchObject({ role: "debug", base: bad });
    expect(told.next(rigged(0.5))).toMatchObject({ role: "improve", base: good });
  });

  it("picks among all buggy leaves, and no other node", () => {
    const told = new Told({ drafts: 4 });
    told.step(0.6);
    const bad = [told.step("crashed"), told.step("no_result"), told.step("timed_out")];
    const picked = [0, 1, 2, 9].map((place) => (told.next(rigged(0, place)) as Call).base);
    expect(new Set(picked)).toEqual(new Set(bad));
    const child = told.step("crashed", rigged(0, 1));
    expect(new Set(told.fold.debuggable)).toEqual(new Set([bad[0], bad[2], child]));
  });

  it("falls through without a buggy leaf", () => {
    const told = new Told({ drafts: 1 });
    const good = told.step(0.6);
    expect(told.next(debugging)).toMatchObject({ role: "improve", base: good });
  });

  it("debugs a leaf at the greatest depth once more, and no deeper one", () => {
    const told = new Told({ drafts: 1, maxDebugDepth: 3 });
    const chain = [told.step("crashed")];
    for (let edge = 1; edge <= 4; edge++) {
      expect(told.next(debugging)).toMatchObject({ role: "debug", base: chain.at(-1) });
      chain.push(told.step("crashed", debugging));
      expect(told.fold.nodes[chain.at(-1) ?? ""]?.debugDepth).toBe(edge);
    }
    expect(told.next(debugging)).toEqual(draft);
  });

  it("counts consecutive debug edges alone", () => {
    const told = new Told({ drafts: 1 });
    told.step("crashed");
    const repaired = told.step(0.6, debugging);
    const worse = told.step("crashed", improving);
    expect(told.fold.nodes[repaired]?.debugDepth).toBe(1);
    expect(told.fold.nodes[worse]?.debugDepth).toBe(0);
  });

  it("leaves a terminal status alone, where one is configured", () => {
    const told = new Told({ drafts: 1, terminal: ["timed_out"] });
    told.step("timed_out");
    expect(told.next(debugging)).toEqual(draft);
  });

  it("compares a repair with what the broken trial set out to beat", () => {
    const told = new Told({ drafts: 1 });
    const good = told.step(0.6);
    const bad = told.step("crashed", improving);
    told.end(told.admit("t0", {}), "gate_missed");
    expect(told.next(debugging)).toMatchObject({ role: "debug", base: bad, comparator: good });
    told.retract(good);
    expect(told.next(debugging)).toMatchObject({ role: "debug", base: bad, comparator: "t0" });
  });
});

describe("steps 3 and 4: something that works, then the best of it", () => {
  it("drafts while nothing works", () => {
    const told = new Told({ drafts: 1 });
    told.step("crashed");
    expect(told.next(improving)).toEqual(draft);
  });

  it("improves the best by raw value, whether kept or not, the older of two equals", () => {
    const told = new Told({ drafts: 1 });
    const first = told.step(0.6);
    expect(told.next(improving)).toEqual({ kind: "call", role: "improve", base: first, comparator: first, detail: { stage: "improve" } });
    const better = told.step(0.7);
    told.step(0.7);
    told.step(0.65);
    expect(told.next(improving)).toMatchObject({ base: better, comparator: better });
  });

  it("reads the direction of the metric, 0 being a value like any other", () => {
    const told = new Told({ drafts: 1 }, { metrics: [{ name: "score", direction: "minimize", from: { kind: "measurement" } }] });
    told.step(0.6);
    const perfect = told.step(0);
    told.step(0.1);
    expect(told.next(improving)).toMatchObject({ base: perfect });
  });

  it("never improves what missed a gate", () => {
    const told = new Told({ drafts: 1 });
    const good = told.step(0.6);
    const illegal = told.answer(told.request(improving));
    told.measure(illegal, 0.9);
    told.end(illegal, "gate_missed");
    expect(told.next(improving)).toMatchObject({ base: good });
  });
});

describe("work in flight", () => {
  it("holds a buggy leaf until its repair ends, whichever way", () => {
    const told = new Told({ drafts: 1 });
    const bad = told.step("crashed");
    const call = told.request(debugging);
    expect(told.next(debugging)).toEqual(draft);
    told.tell({
      type: "call.failed",
      data: { call: call.id, round: 1, kind: "timed_out", message: "", todo: "", final: true, usage: nothing, model: null, traffic: null },
    });
    expect(told.next(debugging)).toMatchObject({ role: "debug", base: bad });

    const lost = told.answer(told.request(debugging));
    expect(told.next(debugging)).toEqual(draft);
    told.end(lost, "infrastructure_error");
    expect(told.next(debugging)).toMatchObject({ role: "debug", base: bad });

    told.step(0.6, debugging);
    expect(told.fold.debuggable).toEqual([]);
  });

  it("gives two workers two leaves", () => {
    const told = new Told({ drafts: 2 });
    told.step("crashed");
    told.step("crashed");
    const bases = [told.request(debugging).move.base, told.request(debugging).move.base];
    expect(new Set(bases)).toEqual(new Set(["t1", "t2"]));
    expect(told.next(debugging)).toEqual(draft);
  });
});

describe("a trial that somebody handed in unasked", () => {
  it("is what its base makes of it", () => {
    const told = new Told({ drafts: 2 });
    const root = told.admit("t0", {});
    told.end(root, "crashed");
    const repair = told.admit(root, {});
    expect(told.fold.nodes[root]).toMatchObject({ stage: "draft", parent: null });
    expect(told.fold.nodes[repair]).toMatchObject({ stage: "debug", parent: root, debugDepth: 1 });
    expect(told.fold.debuggable).toEqual([]);
    told.measure(repair, 0.6);
    told.end(repair, "keep");
    expect(told.fold.nodes[told.admit(repair, {})]).toMatchObject({ stage: "improve", parent: repair, debugDepth: 0 });
    expect(told.fold.drafts).toEqual({ ended: 1, open: 0 });
  });
});

describe("the operator's hand", () => {
  const steer = (told: Told, trial: string, word: "held" | "pinned" | "free"): void =>
    told.tell({ type: "trial.steered", data: { trial, steer: word, reason: "r" } });

  it("keeps a held failure from being repaired, and the drafts that are wanted as they are", () => {
    const told = new Told({ drafts: 2 });
    const leaf = told.step("crashed");
    steer(told, leaf, "held");
    expect(told.next(debugging)).toEqual(draft);
    told.step(0.6);
    expect(told.next(debugging)).toMatchObject({ role: "improve", base: "t2" });
    steer(told, leaf, "free");
    expect(told.next(debugging)).toMatchObject({ role: "debug", base: leaf });
  });

  it("lets nobody wait for a held draft", () => {
    const told = new Told({ drafts: 1 });
    const open = told.answer(told.request(improving));
    expect(told.next(improving)).toEqual({ kind: "wait" });
    steer(told, open, "held");
    expect(told.next(improving)).toEqual(draft);
    steer(told, open, "free");
    expect(told.next(improving)).toEqual({ kind: "wait" });
  });

  it("takes improvements, not drafts and not repairs, to the pinned ones in turn", () => {
    const told = new Told({ drafts: 3 });
    const [a, b, c] = [told.step(0.6), told.step(0.9), told.step("crashed")];
    steer(told, a, "pinned");
    expect(told.next(debugging)).toMatchObject({ role: "debug", base: c });
    const taken = [told.step(0.95)].map(() => told.request(improving).move.base);
    steer(told, "t0", "pinned");
    expect([...taken, told.request(improving).move.base, told.request(improving).move.base]).toEqual([a, a, "t0"]);
    expect(told.fold.drafts).toEqual({ ended: 3, open: 0 });
    steer(told, a, "free");
    steer(told, "t0", "free");
    expect(told.next(improving)).toMatchObject({ role: "improve", base: "t4" });
    expect(b).toBe("t2");
  });
});

describe("a retraction", () => {
  it("falls back to the best that stands", () => {
    const told = new Told({ drafts: 1 });
    const first = told.step(0.6);
    const second = told.step(0.7);
    const third = told.step(0.9);
    told.retract(third);
    expect(told.next(improving)).toMatchObject({ base: second });
    told.retract(second);
    told.retract(first);
    expect(told.next(improving)).toEqual(draft);
  });

  it("takes a buggy node out of the choice, and gives its base back", () => {
    const told = new Told({ drafts: 2 });
    const [a, b] = [told.step("crashed"), told.step("crashed")];
    told.retract(a);
    expect(told.fold.debuggable).toEqual([b]);
    expect(told.fold.drafts).toEqual({ ended: 1, open: 0 });
    told.step("crashed");
    const child = told.step(0.6, rigged(0, 0));
    const parent = told.fold.nodes[child]?.parent;
    expect(told.fold.debuggable).not.toContain(parent);
    told.retract(child);
    expect(told.fold.debuggable).toContain(parent);
  });

  it("of a trial that has not ended keeps it out for good", () => {
    const told = new Told({ drafts: 1 });
    const trial = told.answer(told.request(improving));
    told.measure(trial, 0.9);
    told.retract(trial);
    told.end(trial, "discard");
    expect(told.fold).toMatchObject({ best: null, good: [], nodes: {}, drafts: { ended: 0, open: 0 } });
  });

  it("of a base leaves the work on it an improvement, not a draft", () => {
    const told = new Told({ drafts: 1 });
    told.step(0.6);
    const call = told.request(improving);
    told.retract("t1");
    expect(told.fold.nodes[told.answer(call)]).toMatchObject({ stage: "improve", parent: "t1" });
    expect(told.fold.drafts).toEqual({ ended: 0, open: 0 });
  });
});

/** A world that is a function of one number. */
function worldOf(seed: number): World {
  const draws = drawsOf(seed);
  let asked = 0;
  return {
    answer: (call, round) => (draws.uniform("answer", asked++) < 0.15 ? "fail" : proposal(`${call}/${round}`)),
    measure: (subject, _seed, reason) => {
      const kind = draws.uniform("measure", asked++);
      if (reason === "calibration") return { value: kind };
      return kind < 0.1 ? "interrupted" : kind < 0.5 ? { status: "crashed" } : { value: draws.uniform(subject, 0) };
    },
  };
}

function simulated(world: number, seed: number, parallel: number): SimulatedRun {
  const environment = testEnvironment({ promotion: { rule: "any", confirmations: 1, level: 0.05, minimumGain: null } });
  return new SimulatedRun(
    testConfiguration({ environment, seed, parallel, budget: { trials: 25, costUsd: null, tokens: null, computeMs: null, wallMs: null } }),
    worldOf(world),
  );
}

/** What the fold says, recomputed from the trials alone. */
function expectConsistent(run: SimulatedRun): void {
  const { state } = run;
  const fold = state.organization as TreeFold;
  expect(new Set(fold.debuggable).size).toBe(fold.debuggable.length);
  const children = (id: string): number =>
    Object.values(fold.nodes).filter((node) => node.parent === id).length +
    Object.values(fold.calls).filter((call) => call.parent === id).length;
  for (const [id, node] of Object.entries(fold.nodes)) {
    expect(node.children).toBe(children(id));
    expect(node.place === null ? undefined : fold.debuggable[node.place]).toBe(node.place === null ? undefined : id);
    expect(node.place !== null).toBe(node.kind === "buggy" && node.children === 0 && node.debugDepth <= 3 && !node.held);
    expect(node.held).toBe(state.steers[id]?.steer === "held");
  }
  const free = fold.good.filter((id) => fold.nodes[id]?.held === false).map((id) => state.trials[id]?.values?.score ?? Number.NaN);
  expect(fold.best === null ? undefined : state.trials[fold.best]?.values?.score).toBe(free.length === 0 ? undefined : Math.max(...free));
  const drafts = Object.values(fold.nodes).filter((node) => node.parent === null);
  expect(fold.heldDrafts).toBe(drafts.filter((node) => node.kind === "open" && node.held).length);
  expect(fold.drafts.ended).toBe(drafts.filter((node) => node.kind !== "open").length);
  expect(fold.drafts.open).toBe(
    drafts.filter((node) => node.kind === "open").length + Object.values(fold.calls).filter((call) => call.parent === null).length,
  );
}

describe("whatever happens in a run", () => {
  const worlds = fc.record({ world: fc.nat(100_000), seed: fc.nat(100_000), parallel: fc.integer({ min: 1, max: 8 }) });

  it("counts and places agree with the tree", () => {
    fc.assert(
      fc.property(worlds, ({ world, seed, parallel }) => {
        const run = simulated(world, seed, parallel);
        const draws = drawsOf(seed);
        let said = 0;
        run.work(2000, () => {
          const type = (["hold", "hold", "release", "pin", "retract"] as const)[draws.pick("word", said, 40)];
          const trial = `t${draws.pick("trial", said++, run.state.counters.trial + 1)}`;
          try {
            if (type !== undefined) run.dispatch({ at: run.at, type, trial, reason: "the operator says" });
          } catch (error) {
            if (!(error instanceof RefusedError)) throw error;
          }
          expectConsistent(run);
        });
      }),
      { numRuns: 15 },
    );
  });

  it("the same seed and results give the same steps, from a checkpoint too", () => {
    fc.assert(
      fc.property(worlds, ({ world, seed, parallel }) => {
        const [one, two] = [simulated(world, seed, parallel), simulated(world, seed, parallel)];
        one.work();
        two.work();
        expect(two.events).toEqual(one.events);
        expect(JSON.parse(JSON.stringify(one.state.organization))).toEqual(one.state.organization);
        expect(replay(initialState(), one.stored()).organization).toEqual(one.state.organization);
      }),
      { numRuns: 15 },
    );
  });

  it("another seed draws otherwise", () => {
    const moves = (seed: number): string[] =>
      simulatedSteps(seed).map((event) => (event.type === "call.requested" ? `${event.data.role} ${event.data.base}` : ""));
    const simulatedSteps = (seed: number): StoredRunEvent[] => {
      const run = simulated(7, seed, 1);
      run.work();
      return run.events.filter((event) => event.type === "call.requested");
    };
    expect(new Set([1, 2, 3, 4].map((seed) => moves(seed).join())).size).toBeGreaterThan(1);
    expect(moves(1)).toEqual(moves(1));
  });
});

describe("configuration", () => {
  it("has AIDE's defaults and refuses what it does not know", () => {
    expect(tree.configure({})).toEqual({ policy: "greedy", drafts: 5, debugProbability: 0.5, maxDebugDepth: 3, terminal: [] });
    for (const wrong of [{ policy: "alphabeta" }, { drafts: 0 }, { debugProbability: 1.5 }, { num_drafts: 5 }])
      expect(() => tree.configure(wrong)).toThrow();
  });

  it("is found by its name, and no other is", () => {
    expect(organizationNamed("tree").name).toBe("tree");
    for (const name of ["forest", "constructor"]) expect(() => organizationNamed(name)).toThrow(RefusedError);
  });
});
