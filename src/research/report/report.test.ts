import { describe, expect, it } from "vitest";
import { testConfiguration, testEnvironment } from "../../../tests/support/configuration.js";
import { evolve } from "../../core/harness/evolve.js";
import { initialState, type RunState, trialOf } from "../../core/harness/state.js";
import type { StoredEvent } from "../../core/ports/ledger.js";
import { BlobMissingError } from "../../core/ports/ledger-errors.js";
import { nothing } from "../../core/protocol/budget.js";
import { manifestOf } from "../../core/protocol/candidate.js";
import { canonicalJson, digestOf } from "../../core/protocol/canonical.js";
import { currentVersion, parseEvent, type RunEvent } from "../../core/protocol/events.js";
import type { BlobReference, ManifestReference } from "../../core/protocol/ids.js";
import type { RunConfiguration } from "../../core/protocol/run.js";
import type { TrialStatus } from "../../core/protocol/status.js";
import type { Verdict } from "../../core/protocol/verdict.js";
import type { Attribution } from "../attribution/document.js";
import { attributionText } from "./attribution-text.js";
import { diffCandidates, diffText } from "./candidate-diff.js";
import { commitMessage } from "./commit-message.js";
import { bestExport, bestJson, leaderboardMarkdown, resultsTsv, treeTsv } from "./exports.js";
import { lineageOf, preorder } from "./lineage.js";
import { reportMarkdown } from "./markdown.js";
import { openingOf } from "./opening.js";
import { predictionsOf, scorePredictions } from "./predictions.js";
import { liveLine, trialLine } from "./progress-line.js";
import { showRun, showTrial, UnknownTrialError } from "./show.js";
import { statusText } from "./status-text.js";
import { runSummary, summarize } from "./summary.js";
import { columns } from "./terminal.js";
import { readTimeline } from "./timeline.js";

const start = 1_700_000_000_000;
const held = {
  sandbox: "bubblewrap",
  networkOff: true,
  filesystemIsolated: true,
  unprivileged: true,
  memory: "cgroup-v2",
  processes: "cgroup",
} as const;
const hostile = "faster\t| <img src=x onerror=alert(1)> \u001b[31mred\n# forged\n=1+1 `x` [a](http://e.test)";

function verdict(gain: number, changes: Partial<Verdict> = {}): Verdict {
  return {
    result: "improved",
    gain,
    lower: gain - 0.01,
    upper: gain + 0.01,
    level: 0.05,
    smallestGain: 0.008,
    basis: "paired_seeds",
    seeds: 3,
    records: 0,
    ...changes,
  };
}

/** Writes a ledger by hand, event by event, and folds it. */
class Script {
  readonly state: RunState = initialState();
  readonly events: StoredEvent[] = [];
  readonly blobs = new Map<string, Uint8Array>();
  private measurement = 0;
  private plan = 0;
  private trials = 0;

  constructor(configuration: RunConfiguration = testConfiguration()) {
    this.add({ type: "run.started", data: { configuration } });
    this.add({ type: "run.span_opened", data: { epoch: 1, previousEndedAt: null, drives: true } });
  }

  readonly blob = (digest: string): Uint8Array => {
    const found = this.blobs.get(digest);
    if (found === undefined) throw new BlobMissingError(digest, "the test");
    return found;
  };

  add(event: RunEvent): void {
    const sequence = this.events.length + 1;
    const stored = { type: event.type, version: currentVersion(event.type), data: event.data, sequence, at: start + sequence * 1000 };
    this.events.push(stored);
    evolve(this.state, parseEvent(stored));
  }

  put(text: string): BlobReference {
    const bytes = new TextEncoder().encode(text);
    const digest = digestOf(bytes);
    this.blobs.set(digest, bytes);
    return { blob: digest, bytes: bytes.length };
  }

  candidate(files: Record<string, string>): ManifestReference {
    const manifest = manifestOf(
      Object.entries(files).map(([path, text]) => ({ path, digest: this.put(text).blob, bytes: text.length, executable: false })),
    );
    return { ...this.put(canonicalJson(manifest)), manifest: true };
  }

  private admit(
    trial: string,
    kind: "baseline" | "reference" | "search",
    candidate: ManifestReference,
    base: string | null,
    plan: string | null,
    name: string | null,
  ): void {
    this.add({
      type: "trial.admitted",
      data: {
        trial,
        kind,
        plan,
        candidate,
        base,
        parents: base === null ? [] : [base],
        move: {},
        name,
        bestAtView: null,
        bestAtSubmission: null,
      },
    });
  }

  measure(
    trial: string,
    score: number,
    reason: "first" | "calibration" | "reference" | "confirmation" | "confirmation_of_leader" | "remeasurement",
    place: { subject?: string; pair?: number; seed?: number } = {},
  ): void {
    const metric = this.state.configuration?.environment.metrics[0]?.name ?? "score";
    this.run(trial, reason, place, {
      kind: "measured",
      measured: { values: { [metric]: score }, selfReported: [], guarantees: held, wallSeconds: {} },
      records: null,
      outputs: [],
    });
  }

  private run(
    trial: string,
    reason: "first" | "calibration" | "reference" | "confirmation" | "confirmation_of_leader" | "remeasurement",
    place: { subject?: string; pair?: number; seed?: number },
    result: Extract<RunEvent, { type: "attempt.ended" }>["data"]["result"],
    stderr = "",
    stage = "train",
  ): void {
    this.measurement += 1;
    const measurement = `m${this.measurement}`;
    const purpose = reason.startsWith("confirmation") ? "confirmation" : "in-loop";
    this.add({
      type: "measurement.requested",
      data: {
        measurement,
        trial,
        subject: place.subject ?? trial,
        reason,
        purpose,
        pair: place.pair ?? 0,
        round: purpose === "confirmation" ? 1 : 0,
        seed: place.seed ?? 7,
      },
    });
    this.add({ type: "attempt.started", data: { measurement, attempt: 1, reservation: nothing } });
    this.add({ type: "stage.started", data: { measurement, attempt: 1, stage, repeat: 1 } });
    const outcome = {
      exitCode: 0,
      signal: null,
      limit: null,
      wallMs: 2000,
      cpuMs: 3000,
      peakMemoryBytes: 1,
      stdout: { bytes: 0, omittedBytes: 0 },
      stderr: { bytes: 0, omittedBytes: 0 },
      outputs: [],
      guarantees: held,
    };
    this.add({
      type: "stage.ended",
      data: { measurement, attempt: 1, stage, repeat: 1, outcome, stdout: this.put(""), stderr: this.put(stderr) },
    });
    this.add({ type: "attempt.ended", data: { measurement, attempt: 1, result, usage: { ...nothing, computeMs: 3000 } } });
  }

  end(
    trial: string,
    status: TrialStatus,
    reason: string,
    facts: { leaderVerdict?: Verdict | null; keptUnderAny?: boolean; stage?: string } = {},
  ): void {
    this.add({
      type: "trial.ended",
      data: {
        trial,
        status,
        stage: facts.stage ?? null,
        reason,
        bestAtEnd: status === "keep" ? trial : (this.state.leader?.trial ?? null),
        comparatorVerdict: null,
        leaderVerdict: facts.leaderVerdict ?? null,
        keptUnderAny: facts.keptUnderAny ?? false,
      },
    });
  }

  calibrate(values: readonly number[], references: Record<string, number> = {}): this {
    const mean = values.reduce((a, b) => a + b, 0) / values.length;
    this.admit("t0", "baseline", this.candidate({ "recipe.txt": "one\ntwo\n" }), null, null, "baseline");
    for (const [pair, value] of values.entries()) this.measure("t0", value, "calibration", { pair, seed: 7 + pair });
    Object.entries(references).forEach(([name, value], index) => {
      this.admit(`r${index + 1}`, "reference", this.candidate({ "recipe.txt": name }), null, null, name);
      this.measure(`r${index + 1}`, value, "reference");
      this.end(`r${index + 1}`, "discard", "a reference row is measured, never promoted");
    });
    this.end("t0", "keep", "the starting point, as measured here");
    const metric = this.state.configuration?.environment.metrics[0]?.name ?? "score";
    this.add({ type: "leader.changed", data: { trial: "t0", previous: null, estimate: { [metric]: mean }, cause: "calibration" } });
    const sd = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
    this.add({
      type: "run.calibrated",
      data: {
        noise: { n: values.length, mean, sd, deterministic: sd === 0, records: false, smallestGain: 0.02 },
        stageMs: { train: 1500, measure: 500 },
        pipelineWallMs: 2000,
        pipelineCpuMs: 3000,
      },
    });
    return this;
  }

  /** Admits a searched trial with its plan. */
  search(hypothesis: string, base = "t0", facts: { expectedGain?: number | null; files?: Record<string, string> } = {}): string {
    this.plan += 1;
    this.trials += 1;
    const [plan, trial] = [`p${this.plan}`, `t${this.trials}`];
    this.add({
      type: "plan.proposed",
      data: {
        plan,
        by: { submitter: "tester" },
        base,
        parents: [base],
        respondsTo: [],
        hypothesis,
        expectedGain: facts.expectedGain ?? null,
        commitment: {},
        comparator: base,
      },
    });
    this.add({ type: "plan.admitted", data: { plan } });
    this.admit(trial, "search", this.candidate(facts.files ?? { "recipe.txt": `one\n${this.trials}\n` }), base, plan, null);
    return trial;
  }

  fail(trial: string, status: TrialStatus, reason: string, stderr = ""): void {
    this.run(trial, "first", {}, { kind: "ended", status, stage: "train", reason, values: {} }, stderr);
    this.end(trial, status, reason, { stage: "train" });
  }

  discard(trial: string, value: number): void {
    this.measure(trial, value, "first");
    this.end(trial, "discard", "not better than the leader", { leaderVerdict: verdict(-0.02, { result: "not_improved" }) });
  }

  /** Measures, confirms on three seeds against the leader, and keeps. */
  confirm(trial: string, first: number, confirmations: readonly number[], gain: number): void {
    const metric = this.state.configuration?.environment.metrics[0]?.name ?? "score";
    const against = this.state.leader?.trial ?? "t0";
    this.measure(trial, first, "first");
    this.add({ type: "trial.provisional", data: { trial, against, round: 1 } });
    confirmations.forEach((value, pair) => {
      this.measure(trial, value, "confirmation", { pair, seed: 9000 + pair });
      this.measure(trial, value - gain, "confirmation_of_leader", { subject: against, pair, seed: 9000 + pair });
    });
    const estimate = { [metric]: confirmations.reduce((a, b) => a + b, 0) / confirmations.length };
    this.add({ type: "trial.confirmed", data: { trial, against, round: 1, verdict: verdict(gain), estimate } });
    this.end(trial, "keep", `better than ${against}`, { leaderVerdict: verdict(gain), keptUnderAny: true });
    this.add({ type: "leader.changed", data: { trial, previous: against, estimate, cause: "promotion" } });
  }

  finish(): this {
    this.add({ type: "run.finished", data: { reason: "the trials budget is spent" } });
    return this;
  }

  get now(): number {
    return start + this.events.length * 1000;
  }

  evidence() {
    return { blob: this.blob, timeline: readTimeline(this.events) };
  }
}

/** Baseline 0.80; t1 kept at 0.85 (confirmed), t2 crashed, t3 on t1 kept at 0.88, t4 discarded, t5 crashed. */
function wholeRun(): Script {
  const run = new Script().calibrate([0.79, 0.8, 0.81], { forest: 0.83 });
  run.confirm(run.search(hostile, "t0", { expectedGain: 0.04, files: { "recipe.txt": "one\nTWO\n" } }), 0.87, [0.84, 0.85, 0.86], 0.05);
  run.fail(run.search("breaks", "t0"), "crashed", "train exited with code 1", "Traceback\n\u001b[31mValueError: no");
  run.confirm(
    run.search("deeper", "t1", { expectedGain: 0.01, files: { "recipe.txt": "one\nTWO\nthree\n", "a`b.txt": "x" } }),
    0.9,
    [0.87, 0.88, 0.89],
    0.03,
  );
  run.discard(run.search("worse", "t3", { expectedGain: 0.02 }), 0.7);
  run.fail(run.search("breaks too", "t3"), "crashed", "train exited with code 1");
  return run.finish();
}

describe("summary", () => {
  it("keeps its documented schema, in JSON and back", () => {
    const run = wholeRun();
    const summary = summarize(run.state, run.now, run.evidence());
    expect(runSummary.parse(JSON.parse(JSON.stringify(summary)))).toEqual(summary);
  });

  it("says what won, by the confirmations alone, and how sure", () => {
    const run = wholeRun();
    const { best, baseline, trials, metric, keeps, failures, references, spend, nullRun } = summarize(run.state, run.now);
    expect(metric).toEqual({ name: "score", direction: "maximize", selfReported: false });
    expect(baseline).toMatchObject({ n: 3, mean: expect.closeTo(0.8, 10), sd: expect.closeTo(0.01, 10) });
    expect(best).toMatchObject({ trial: "t3", value: expect.closeTo(0.88, 10), provisionalValue: 0.9, confirmed: true });
    expect(best?.gain).toMatchObject({ value: 0.03, over: "t1", level: 0.05 });
    // t(2 degrees of freedom, 0.05) = 2.920; standard error 0.01 / √3.
    expect(best?.interval?.[0]).toBeCloseTo(0.88 - 2.91999 * (0.01 / Math.sqrt(3)), 5);
    // Judged against t1, so no interval over the baseline is claimed.
    expect(best?.overBaseline).toEqual({
      absolute: expect.closeTo(0.08, 10),
      percent: expect.closeTo(10, 8),
      beside: null,
      lower: null,
      upper: null,
    });
    expect(trials).toMatchObject({ keep: 2, discard: 1, crashed: 2, timed_out: 0 });
    expect(keeps).toEqual({ underRule: 2, underAny: 2 });
    expect(failures).toMatchObject({ total: 2, groups: [{ status: "crashed", stage: "train", n: 2, trials: ["t2", "t5"] }] });
    expect(references).toMatchObject([{ trial: "r1", name: "forest", value: 0.83, gainOverBaseline: expect.closeTo(0.03, 10) }]);
    expect(spend).toMatchObject({ trials: 5, computeMs: 21 * 3000 });
    expect(nullRun).toBe(false);
  });

  it("gives the paired interval over the baseline when the verdict was against it", () => {
    const run = new Script().calibrate([0.79, 0.8, 0.81]);
    run.confirm(run.search("once"), 0.87, [0.84, 0.85, 0.86], 0.05);
    const { best } = summarize(run.state, run.now);
    expect(best?.overBaseline).toEqual({
      absolute: 0.05,
      percent: expect.closeTo(6.25, 8),
      beside: expect.closeTo(0.8, 10),
      lower: expect.closeTo(0.04, 10),
      upper: expect.closeTo(0.06, 10),
    });
  });

  it("gives the percentage of the baseline beside it, and says so, when that is another one than at calibration", () => {
    const run = new Script().calibrate([0.79, 0.8, 0.81]);
    run.confirm(run.search("once"), 0.87, [0.84, 0.85, 0.86], 0.45);
    const summary = summarize(run.state, run.now);
    expect(summary.best?.overBaseline?.percent).toBeCloseTo(112.5, 8);
    expect(statusText(summary).replaceAll(/\s+/g, " ")).toContain("; measured beside it, the baseline was 0.4 and not 0.8");
  });

  it("counts gains as positive when smaller is better", () => {
    const environment = testEnvironment({
      metrics: [{ name: "loss", direction: "minimize", from: { kind: "measurement" } }],
      promotion: { rule: "any", confirmations: 1, level: 0.05, minimumGain: null },
    });
    const run = new Script(testConfiguration({ environment })).calibrate([1, 1.1, 0.9]);
    const trial = run.search("lower");
    run.measure(trial, 0.8, "first");
    run.end(trial, "keep", "better than t0", {
      leaderVerdict: verdict(0.2, { basis: "order", lower: null, upper: null, smallestGain: null, seeds: 1 }),
      keptUnderAny: true,
    });
    run.add({ type: "leader.changed", data: { trial, previous: "t0", estimate: { loss: 0.8 }, cause: "promotion" } });
    const { best } = summarize(run.state, run.now);
    expect(best).toMatchObject({ trial, value: 0.8, confirmed: false, interval: null, overBaseline: { absolute: 0.2, lower: null } });
    // Without a confirmation the opponent is the keep before it.
    expect(best?.gain?.over).toBe("t0");
    expect(statusText(summarize(run.state, run.now))).toContain("NOT confirmed");
  });

  it("describes an empty run and a run under calibration without inventing a number", () => {
    const empty = summarize(initialState(), start);
    expect(runSummary.parse(empty)).toMatchObject({ run: null, state: "new", metric: null, best: null, baseline: null, nullRun: false });
    const fresh = new Script();
    expect(summarize(fresh.state, fresh.now)).toMatchObject({
      run: "test",
      state: "calibrating",
      best: null,
      expectedCost: null,
      time: { leftMs: null },
    });
  });

  it("takes the interval from records where seeds change nothing", () => {
    const run = new Script().calibrate([0.8, 0.8, 0.8]);
    run.confirm(run.search("once"), 0.85, [0.85, 0.85, 0.85], 0.05);
    expect(summarize(run.state, run.now).best?.interval).toBeNull();
    const records = run.put(JSON.stringify({ metric: "score", ids: [1, 2, 3, 4], values: [0.8, 0.8, 0.9, 0.9] }));
    for (const result of run.state.trials["t1"]?.results ?? []) result.records = records;
    // Standard error 0.05774 / √4; t(3 degrees of freedom, 0.05) = 2.353.
    expect(summarize(run.state, run.now, { blob: run.blob }).best?.interval?.[1]).toBeCloseTo(0.85 + 2.35336 * 0.0288675, 5);
  });

  it("names what a winner was built on that was not kept: the idea may be that of a crash which it repaired", () => {
    const run = new Script().calibrate([0.79, 0.8, 0.81]);
    run.confirm(run.search("kept before", "t0"), 0.87, [0.84, 0.85, 0.86], 0.05);
    run.fail(run.search("the idea", "t1"), "crashed", "train exited with code 1");
    run.confirm(run.search("a typo mended", "t2"), 0.9, [0.87, 0.88, 0.89], 0.03);
    const summary = summarize(run.state, run.now);
    expect(summary.best).toMatchObject({ trial: "t3", builtOn: [{ trial: "t2", hypothesis: "the idea" }] });
    expect(statusText(summary).replaceAll(/\s+/g, " ")).toContain(": a typo mended (with the change of t2: the idea)");
    expect(commitMessage("run", run.state, trialOf(run.state, "t3"), { chain: "c", events: 1 })).toContain(
      "\nBuilt on: t2, crashed: the idea\n",
    );
    expect(summarize(wholeRun().state, run.now).best?.builtOn).toEqual([]);
  });

  it("flags a null run only once it is over", () => {
    const run = new Script().calibrate([0.79, 0.8, 0.81]);
    run.fail(run.search("a"), "timed_out", "train reached its wall-clock limit");
    expect(summarize(run.state, run.now).nullRun).toBe(false);
    run.finish();
    const summary = summarize(run.state, run.now);
    expect(summary).toMatchObject({ nullRun: true, best: { trial: "t0", gain: null, overBaseline: null } });
    expect(statusText(summary)).toContain("NULL RUN");
    expect(reportMarkdown(run.state, run.now)).toContain("NULL RUN");
  });

  it("lists retractions, and says when the best rests on one", () => {
    const run = wholeRun();
    run.add({ type: "trial.retracted", data: { trial: "t1", reason: "labels leaked", dependents: ["t3"] } });
    expect(summarize(run.state, run.now).retractions).toEqual([{ trial: "t1", reason: null, dependents: null }]);
    const summary = summarize(run.state, run.now, run.evidence());
    expect(summary.retractions).toEqual([{ trial: "t1", reason: "labels leaked", dependents: ["t3"] }]);
    expect(summary.best?.restsOnRetracted).toEqual(["t1"]);
    expect(statusText(summary)).toMatch(/WARNING +The best rests on t1/);
  });

  it("estimates the time left from the run's own pace, and never past the wall cap", () => {
    const run = wholeRunUnfinished();
    const withoutWall = summarize(run.state, run.now).time;
    const perTrial = (withoutWall.activeMs - 4 * 2000) / 5;
    expect(withoutWall.leftMs).toBeCloseTo(5 * perTrial, 6);
    const { configuration } = run.state;
    if (configuration !== null) configuration.budget.wallMs = withoutWall.activeMs + 10;
    expect(summarize(run.state, run.now).time.leftMs).toBe(10);
  });
});

function wholeRunUnfinished(): Script {
  const run = new Script().calibrate([0.79, 0.8, 0.81], { forest: 0.83 });
  for (let index = 0; index < 5; index++) run.discard(run.search(`try ${index}`), 0.7);
  return run;
}

describe("status text", () => {
  it("opens with the answer", () => {
    const run = wholeRun();
    const lines = statusText(summarize(run.state, run.now)).split("\n");
    const labels = lines.map((line) => line.slice(0, 11).trim());
    expect(labels.filter((label) => ["Won", "Gain", "Sure", "Cost", "Failed"].includes(label))).toEqual([
      "Won",
      "Gain",
      "Sure",
      "Cost",
      "Failed",
    ]);
    expect(labels.indexOf("Failed")).toBeLessThan(12);
    expect(lines.join("\n")).toContain("t3, 0.88 score (maximize), confirmed on fresh seeds; baseline 0.8: deeper");
    expect(lines.join("\n")).toContain("improved over t1 by +0.03, 90 % interval +0.02 to +0.04; paired by seed (3 seed pairs)");
  });

  it("keeps to its columns and prints no control character, whatever a hypothesis holds", () => {
    const run = new Script().calibrate([0.79, 0.8, 0.81]);
    run.confirm(run.search(`${hostile} ${"x".repeat(300)}`), 0.87, [0.84, 0.85, 0.86], 0.05);
    run.fail(run.search("b"), "crashed", `${hostile}${"y".repeat(400)}`);
    run.add({
      type: "call.requested",
      data: {
        call: "c1",
        role: "coder",
        researcher: "x",
        view: run.put("v"),
        viewVersion: 1,
        base: "t0",
        comparator: "t0",
        expects: "proposal",
        plan: null,
        move: {},
        seed: 1,
        bestAtView: null,
        reservation: nothing,
      },
    });
    run.add({
      type: "call.refused",
      data: {
        call: "c1",
        round: 1,
        output: null,
        violations: [{ code: "outside", message: hostile, path: "../\u001b]0;x" }],
        final: true,
        usage: nothing,
        model: null,
        traffic: null,
      },
    });
    const texts = [
      statusText(summarize(run.state, run.now, run.evidence())),
      showRun(run.state),
      showTrial(run.state, "t1", run.evidence()),
      showTrial(run.state, "t2", run.evidence()),
      liveLine(run.state, run.now),
      trialLine(run.state, "t1"),
      trialLine(run.state, "t2"),
    ];
    for (const text of texts) {
      expect(text.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
      for (const line of text.split("\n")) expect([...line].length).toBeLessThanOrEqual(columns);
    }
  });

  it("is loud about a missing sandbox and a self-reported metric", () => {
    const environment = testEnvironment({
      metrics: [{ name: "score", direction: "maximize", from: { kind: "stdout", stage: "train", pattern: "x" } }],
    });
    const run = new Script(testConfiguration({ environment, sandbox: "none" })).calibrate([0.79, 0.8, 0.81]);
    const text = statusText(summarize(run.state, run.now));
    expect(text).toContain("RUN WITHOUT A SANDBOX");
    expect(text).toContain("SELF-REPORTED");
    expect(leaderboardMarkdown(run.state, run.now)).toContain("without a sandbox");
  });

  it("describes an empty run", () => {
    expect(statusText(summarize(initialState(), start))).toContain("nothing yet");
  });

  it("paints whole lines only, so that escape codes never change the width", () => {
    const run = wholeRun();
    const mark = (text: string): string => `<${text}>`;
    const painted = statusText(summarize(run.state, run.now), { bold: mark, dim: mark, good: mark, bad: mark });
    expect(painted.replaceAll(/[<>]/g, "")).toBe(statusText(summarize(run.state, run.now)).replaceAll(/[<>]/g, ""));
  });
});

describe("progress", () => {
  it("says of a trial its status, value and gain, and of a failed one why", () => {
    const run = wholeRun();
    expect(trialLine(run.state, "t3")).toMatch(/^t3 +keep +0\.88 \(\+0\.08\) confirmed {2}deeper$/);
    expect(trialLine(run.state, "t2")).toMatch(/^t2 +crashed +train exited with code 1 {2}\| breaks$/);
  });

  it("has a live line with done, best, statuses, time left and spend", () => {
    const run = wholeRunUnfinished();
    expect(liveLine(run.state, run.now, 200)).toMatch(/^5\/10 searching \| baseline 0\.8 \| 5 discard \| ~.* left \| .*, 27 s CPU$/);
    expect(liveLine(initialState(), start)).toBe("0 new | 0 ms, 0 ms CPU");
    expect(liveLine(wholeRun().state, run.now, 200)).toContain("best t3 0.88 (+0.08, +10 %)");
  });
});

/** t1 is entangled, t3 real; and another change that is not needed. */
function taken(apart: Partial<Attribution> = {}): Attribution {
  const change = (id: string, facts: Partial<Attribution["changes"][number]>): Attribution["changes"][number] => ({
    change: id,
    base: "t0",
    words: hostile,
    paths: ["a`b|.txt"],
    class: "real",
    gain: { value: 0.03, lower: 0.02, upper: 0.04 },
    adjustedP: 0.004,
    trial: "t1",
    with: [],
    note: "",
    ...facts,
  });
  return {
    schema: "trialist/attribution@1",
    run: "test",
    winner: "t3",
    by: "step",
    list: "test-attribution",
    state: "done",
    metric: "score",
    pairs: 3,
    level: 0.05,
    margin: 0.01,
    changes: [change("t1", { class: "neutral", gain: { value: 0.001, lower: -0.004, upper: 0.006 } }), change("t3", {})],
    groups: [],
    smallest: {
      run: "test-attribution-smallest",
      state: "done",
      leavesOut: ["t1"],
      isBaseline: false,
      value: 0.88,
      overWinner: { value: 0, lower: -0.005, upper: 0.005 },
      overBaseline: { value: 0.08, lower: 0.07, upper: 0.09 },
      keepsTheGain: "yes",
      beatsTheBaseline: "yes",
      note: "",
    },
    note: "",
    ...apart,
  };
}

describe("the morning", () => {
  const openingAt = (run: Script, attribution: Attribution | null): string[] =>
    openingOf(summarize(run.state, run.now, { ...run.evidence(), attribution })).map(({ label, text }) => `${label}: ${text}`);

  it("begins with what won, how sure, owing to what, what it cost, what failed, and what to do", () => {
    const run = wholeRun();
    expect(openingAt(run, null).map((line) => line.split(":")[0])).toEqual(["Won", "Gain", "Sure", "Errors", "Cost", "Failed", "Next"]);
    expect(openingAt(run, null).at(-1)).toBe(
      "Next: `trialist apply test` puts t3 into the working tree; `trialist attribute test` says which of its changes the gain needs",
    );
    expect(openingAt(run, null).at(-2)).toContain("2 of 5 trials; most often (1) crashed in train: ValueError: no (t2)");
  });

  it("says in a line what the gain is owed to, and offers the smallest recipe only where it is as good", () => {
    const run = wholeRun();
    const lines = openingAt(run, taken());
    expect(lines[4]).toBe(
      "Changes: of 2 changes 1 real (t3 +0.03), 1 neutral (t1 +0.001); without t1 it keeps the gain (0, -0.005 to +0.005 over the winner)",
    );
    expect(lines.at(-1)).toContain("`trialist apply test-attribution-smallest` puts the smallest recipe");
    for (const keepsTheGain of ["no", "undecided"] as const) {
      const other = taken({ smallest: { ...taken().smallest, keepsTheGain } });
      expect(openingAt(run, other).at(-1)).toBe("Next: `trialist apply test` puts t3 into the working tree");
    }
    expect(openingAt(run, taken({ state: "measuring", changes: taken().changes.map((each) => ({ ...each, class: null })) }))[4]).toContain(
      "0 of 2 changes measured; `trialist attribute test` goes on",
    );
  });

  it("has the changes in a section that hostile words cannot leave, and the document in the summary", () => {
    const run = wholeRun();
    const report = reportMarkdown(run.state, run.now, { ...run.evidence(), attribution: taken() });
    const headings = [...report.matchAll(/^## .*/gm)].map((found) => found[0]);
    expect(headings.slice(0, 2)).toEqual(["## What t3 owes its gain to", "## What failed, and why"]);
    const rows = report.split("\n").filter((line) => /^\| t[13] \| (neutral|real) /.test(line));
    expect(rows).toHaveLength(2);
    for (const row of rows) expect(row.match(/(?<!\\)\|/g)).toHaveLength(9);
    expect(report).not.toMatch(/<img|^# forged/m);
    expect(report).not.toContain("\u001b");
    const summary = summarize(run.state, run.now, { ...run.evidence(), attribution: taken() });
    expect(runSummary.parse(JSON.parse(JSON.stringify(summary))).attribution).toEqual(taken());
    expect(attributionText(taken())).not.toContain("\u001b");
  });

  it("says what to look at where nothing won, and nothing while the run goes on", () => {
    const lost = new Script().calibrate([0.79, 0.8, 0.81]);
    lost.fail(lost.search("breaks"), "crashed", "train exited with code 1", "KeyError: 7\n");
    expect(openingAt(lost, null).some((line) => line.startsWith("Next"))).toBe(false);
    expect(openingAt(lost.finish(), null).at(-1)).toBe("Next: `trialist show test t1` has the output of what failed most");
    const dull = new Script().calibrate([0.79, 0.8, 0.81]);
    dull.discard(dull.search("worse"), 0.7);
    expect(openingAt(dull.finish(), null).at(-1)).toBe("Next: nothing to apply: `trialist show test` lists what was tried");
  });
});

describe("report.md", () => {
  it("holds the answer, the diff, the lineage and the verdicts", () => {
    const run = wholeRun();
    const report = reportMarkdown(run.state, run.now, run.evidence());
    const headings = [...report.matchAll(/^##? .*/gm)].map((found) => found[0]);
    expect(headings).toEqual([
      "# test",
      "## What failed, and why",
      "## The winner: t3",
      "## How it came about",
      "## Environment",
      "## Calibration",
      "## Confirmations",
      "## What another rule would have kept",
      "## Trials",
      "## Predictions",
      "## Conditions",
      "## Budget",
      "## How to check this",
    ]);
    expect(report).toContain("-two\n+TWO\n+three\n");
    expect(report).toMatch(/\| t3 \| keep \| 0\.9 \| 0\.88 \| improved over t1: \+0\.03/);
    expect(report).toContain("network off, files isolated, unprivileged user");
    expect(report).not.toMatch(/held-out looks/);
    expect(report).not.toContain("900");
  });

  it("escapes what researchers wrote", () => {
    const run = wholeRun();
    const report = reportMarkdown(run.state, run.now, run.evidence());
    expect(report).not.toContain("<img");
    expect(report).not.toContain("\u001b");
    expect(report).not.toMatch(/^# forged/m);
    const rows = report.split("\n").filter((line) => line.startsWith("| t1 |") && line.includes("faster"));
    expect(rows).toHaveLength(2);
    for (const row of rows) expect(row.match(/(?<!\\)\|/g)?.length).toBe(row.includes("min") || row.includes(" s |") ? 11 : 7);
  });

  it("shows 200 trials and says how many it left out", () => {
    const run = new Script().calibrate([0.79, 0.8, 0.81]);
    for (let index = 0; index < 203; index++) run.discard(run.search("same"), 0.7);
    const report = reportMarkdown(run.state, run.now);
    expect(report).toContain("3 trials omitted here");
    expect(report).toContain("| t200 |");
    expect(report).not.toContain("| t201 |");
  });

  it("describes an empty run, and goes on without pruned blobs", () => {
    expect(reportMarkdown(initialState(), start)).toContain("# A run that has not started");
    const run = wholeRun();
    run.blobs.clear();
    expect(reportMarkdown(run.state, run.now, run.evidence())).toContain("Its files are no longer kept.");
  });
});

describe("exports", () => {
  const rowsOf = (text: string): string[][] =>
    text
      .replace(/\n$/, "")
      .split("\n")
      .map((line) => line.split("\t"));

  it("results.tsv has one row per searched trial, as many cells as columns, and full precision", () => {
    const run = wholeRun();
    const rows = rowsOf(resultsTsv(run.state, run.evidence()));
    const [header = [], first = []] = rows;
    expect(rows).toHaveLength(6);
    expect(new Set(rows.map((row) => row.length))).toEqual(new Set([header.length]));
    const cell = (name: string): string | undefined => first[header.indexOf(name)];
    expect([
      cell("exp_id"),
      cell("specialist"),
      cell("parent_exp"),
      cell("status"),
      cell("score"),
      cell("delta_vs_best"),
      cell("baseline_exp"),
    ]).toEqual(["t1", "tester", "t0", "keep", "0.87", "0.05", "t0"]);
    expect(cell("hypothesis")).toContain("faster\\t|");
    expect(cell("timestamp")).toMatch(/^2023-11-14T/);
  });

  it("works without events and on an empty run", () => {
    expect(rowsOf(resultsTsv(wholeRun().state))).toHaveLength(6);
    expect(rowsOf(resultsTsv(initialState()))).toHaveLength(1);
    expect(rowsOf(treeTsv(initialState()))).toHaveLength(1);
    expect(leaderboardMarkdown(initialState(), start)).toContain("Nothing is measured yet");
    expect(bestExport(initialState(), start)).toMatchObject({ best: null, candidate: null });
  });

  it("tree.tsv is in preorder, with depths and paths", () => {
    const run = wholeRun();
    const rows = rowsOf(treeTsv(run.state)).slice(1);
    expect(rows.map((row) => [row[0], row[2], row[3]])).toEqual([
      ["t0", "0", "t0"],
      ["t1", "1", "t0/t1"],
      ["t3", "2", "t0/t1/t3"],
      ["t4", "3", "t0/t1/t3/t4"],
      ["t5", "3", "t0/t1/t3/t5"],
      ["t2", "1", "t0/t2"],
      ["r1", "0", "r1"],
    ]);
    expect(lineageOf(run.state, "t3").map((trial) => trial.id)).toEqual(["t0", "t1", "t3"]);
    expect(preorder(initialState())).toEqual([]);
  });

  it("best.json holds the value, the whole hypothesis and the files", () => {
    const run = wholeRun();
    const best = JSON.parse(bestJson(run.state, run.now, run.evidence()));
    expect(best).toMatchObject({
      schema: "trialist/best@1",
      best: { trial: "t3" },
      values: { score: expect.closeTo(0.88, 10) },
      hypothesis: "deeper",
      specialist: "tester",
    });
    expect(best.candidate.manifest.files.map((file: { path: string }) => file.path)).toEqual(["a`b.txt", "recipe.txt"]);
  });

  it("LEADERBOARD.md ranks keeps first, by confirmed value, and leaves retracted trials out", () => {
    const run = wholeRun();
    const ids = (): string[] => [...leaderboardMarkdown(run.state, run.now).matchAll(/^\| \d+ \| (t\d+)/gm)].map((found) => found[1] ?? "");
    expect(ids()).toEqual(["t3", "t1", "t4"]);
    run.add({ type: "trial.retracted", data: { trial: "t1", reason: "leak", dependents: [] } });
    expect(ids()).toEqual(["t3", "t4"]);
  });
});

describe("show", () => {
  it("lists all trials and marks the best", () => {
    const text = showRun(wholeRun().state);
    expect(text).toMatch(/^\* +t3 +t1 +keep +0\.88 +\+0\.08 +deeper/m);
    expect(text).toMatch(/^ +t2 +t0 +crashed .*train exited with code 1 \| breaks/m);
    expect(showRun(initialState())).toContain("No trial yet");
  });

  it("shows one trial with its files and the end of the failing output", () => {
    const run = wholeRun();
    const text = showTrial(run.state, "t2", run.evidence());
    expect(text).toContain("train stderr, its end:");
    expect(text).toContain("\\u{1b}[31mValueError: no");
    expect(text).toContain("1 file:");
  });

  it("hides the seeds of confirmations while the run goes on", () => {
    const run = new Script().calibrate([0.79, 0.8, 0.81]);
    run.confirm(run.search("once"), 0.87, [0.84, 0.85, 0.86], 0.05);
    expect(showTrial(run.state, "t1")).not.toContain("9001");
    expect(showTrial(run.state, "t0")).toContain(" 8 ");
    run.finish();
    expect(showTrial(run.state, "t1")).toContain("9001");
  });

  it("refuses a trial that there is not", () => {
    expect(() => showTrial(wholeRun().state, "t99")).toThrow(UnknownTrialError);
  });
});

describe("diff of candidates", () => {
  it("names added, removed, changed and binary files", () => {
    const run = new Script();
    const manifest = (files: Record<string, string>) => JSON.parse(new TextDecoder().decode(run.blob(run.candidate(files).blob)));
    const changes = diffCandidates(manifest({ a: "1\n", b: "2\n", same: "=" }), manifest({ b: "3\n", c: "\u0000", same: "=" }), run.blob);
    expect(changes.map(({ path, kind, patch }) => [path, kind, patch === null])).toEqual([
      ["a", "removed", false],
      ["b", "changed", false],
      ["c", "added", true],
    ]);
    expect(diffText(changes)).toContain("--- a/b\n+++ b/b\n@@ -1,1 +1,1 @@\n-2\n+3\n");
  });
});

describe("predictions", () => {
  it("scores signs, errors and ranks", () => {
    const run = wholeRun();
    const predictions = predictionsOf(run.state);
    expect(predictions.map((each) => each.trial)).toEqual(["t1", "t3", "t4"]);
    const score = scorePredictions(predictions);
    expect(score.n).toBe(3);
    expect(score.signAgreement).toBeCloseTo(2 / 3, 10);
    expect(scorePredictions([1, 2, 3].map((value) => ({ trial: "t1", expected: value, measured: value * 2 }))).rankCorrelation).toBeCloseTo(
      1,
      10,
    );
    expect(scorePredictions([1, 2, 3].map((value) => ({ trial: "t1", expected: 1, measured: value }))).rankCorrelation).toBeNull();
    expect(scorePredictions([])).toMatchObject({ n: 0, signAgreement: null });
  });
});
