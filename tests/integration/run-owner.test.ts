import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runKey } from "../../src/app/executors.js";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import type { RunState } from "../../src/core/harness/state.js";
import { LedgerSchemaError, LedgerUnavailableError } from "../../src/core/ports/ledger-errors.js";
import { type Circumstances, commandLine, type Driven, drive, driven, type Ended } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, proposes, scoring, waiting } from "../support/lab.js";
import type { Report, Step } from "../support/run-driver.js";

/** Who may do what with a run, and what a person or the machine does to the process that owns it. */
const seed = 3;
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

const budget = (trials: number) => ({ trials, costUsd: null, tokens: null, computeMs: null, wallMs: null });
const create = (trials: number): Step => ({
  do: "create",
  name: "run",
  request: { seed, budget: budget(trials), organization: { name: "tree", configuration: { drafts: 50 } } },
});
const go: Step = { do: "work", name: "run" };
const tell: Step = { do: "report", name: "run" };

async function reported(steps: readonly Step[], more: Circumstances = {}): Promise<Report> {
  const report = (await driven(lab, [...steps, tell], more)).at(-1);
  if (report === undefined) throw new Error("no report");
  return report;
}

/** A pack whose candidates may wait at the lab's gate. */
function gated(...words: string[]): Record<string, string> {
  return numberPack({ seed, words, rule: "any", wall: "10 min", gate: lab.gate });
}

/** The command line with the words of this test's run. */
function trialist(...words: string[]): Driven {
  return commandLine(lab, ...words);
}

async function said(...words: string[]): Promise<Ended> {
  return trialist(...words).ended;
}

function starts(trials: number, ...more: string[]): string[] {
  return [
    "run",
    lab.pack,
    "--name",
    "run",
    "--researcher",
    "command:sh answer.sh",
    "--seed",
    String(seed),
    "--drafts",
    "50",
    "--max-trials",
    String(trials),
    ...more,
  ];
}

function stateNow(): RunState | null {
  const project = new Project(lab.project);
  if (!project.runNames().includes("run")) return null;
  const inspected = inspectRun(project, "run");
  inspected.close();
  return inspected.state;
}

function whenReadable<T>(look: () => T): T | null {
  try {
    return look();
  } catch (error) {
    if (error instanceof LedgerSchemaError || error instanceof LedgerUnavailableError) return null;
    throw error;
  }
}

async function until(what: string, holds: (state: RunState) => boolean, patienceMs = 60_000): Promise<void> {
  for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await sleep(50)) {
    // A ledger that is just being made is none yet.
    const state = whenReadable(stateNow);
    if (state !== null && holds(state)) return;
  }
  throw new Error(`the run did not come to where ${what}`);
}

/** Resolves when the program of this measurement's candidate runs. */
async function untilRunning(measurement: string): Promise<void> {
  const status = join(
    lab.cache,
    "executors",
    runKey(new Project(lab.project).runFolder("run")),
    "executions",
    `${measurement}.1+train-1`,
    "status",
  );
  for (let waited = 0; waited < 60_000; waited += 20) {
    if (existsSync(status) && readFileSync(status, "utf8").includes("child-pid")) return;
    await sleep(20);
  }
  throw new Error(`${measurement} did not start`);
}

describe("one owner", () => {
  it("refuses a second process, and says who has the run and what to do", async () => {
    lab.write(gated(proposes(waiting("end", 300))));
    const owner = drive(lab, [create(1), go, tell]);
    await untilRunning("m3");
    const second = await said("resume", "run");
    lab.open("end");
    expect(second.code).toBe(2);
    expect(second.stderr).toMatch(
      new RegExp(`run run to have no owner; found that it is owned by process ${owner.child.pid} .*trialist pause run`),
    );
    const { code, reports } = await owner.ended;
    expect(code).toBe(0);
    expect(reports[0]).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(of(reports[0]?.events ?? [], "run.span_opened")).toHaveLength(1);
  });

  it("refuses a second run of the name, and a resume of one that is over, or that never was", async () => {
    lab.write(numberPack({ seed, words: [proposes(scoring(300))], rule: "any" }));
    expect((await said(...starts(1))).code).toBe(0);
    const before = await reported([]);
    const again = await said(...starts(1));
    expect([again.code, again.stderr]).toEqual([
      2,
      expect.stringMatching(/a name that no run of this project has; found "run".*resume run/),
    ]);
    const over = await said("resume", "run");
    expect([over.code, over.stderr]).toEqual([
      2,
      expect.stringMatching(/a run that is not over; found run, which is finished.*trialist report run/),
    ]);
    const never = await said("resume", "other");
    expect([never.code, never.stderr]).toEqual([2, expect.stringMatching(/the name of a run of this project; found "other".*Known: run/)]);
    expect(await reported([])).toEqual(before);
  });

  it.each([
    ["a changed evaluator", "evaluate.sh", (text: string) => `# changed\n${text}`],
    ["a contract that is none any more", "environment.yaml", () => "schema: trialist/environment@1\nname: [\n"],
  ])("refuses to resume under %s, and goes on with the frozen one", async (_what, file, change) => {
    lab.write(numberPack({ seed, words: [proposes(scoring(300)), proposes(scoring(400))], rule: "any" }));
    await drive(lab, [create(2), { ...go, death: { side: "after", append: 4 } } as Step]).ended;
    const before = stateNow();
    const original = readFileSync(join(lab.pack, file), "utf8");
    writeFileSync(join(lab.pack, file), change(original));
    const changed = await said("resume", "run");
    expect([changed.code, changed.stderr]).toEqual([2, expect.stringMatching(/the environment that run was started with.*--frozen/s)]);
    expect(stateNow()).toEqual(before);
    expect((await said("resume", "run", "--frozen")).code).toBe(0);
    expect(await reported([])).toMatchObject({ phase: "finished", verified: { ok: true } });
  });
});

describe("a person, from another process", () => {
  it("pauses, resumes, retracts and finishes through the owner", async () => {
    lab.write(gated(proposes(scoring(300)), proposes(waiting("second", 400)), proposes(waiting("third", 500)), proposes(scoring(600))));
    const owner = trialist(...starts(4));
    await untilRunning("m4");
    const paused = await said("pause", "run", "--reason", "lunch");
    expect(paused).toMatchObject({ code: 0, stdout: expect.stringMatching(/run is paused \(its process was told\)/) });
    lab.open("second");
    expect((await owner.ended).code).toBe(4);
    expect(stateNow()).toMatchObject({ phase: "paused", reason: "lunch" });

    const later = trialist("resume", "run", "--frozen");
    await untilRunning("m5");
    expect((await said("retract", "run", "t2", "--reason", "it looked")).code).toBe(0);
    expect((await said("retract", "run", "t7", "--reason", "there is none")).code).toBe(2);
    expect((await said("finish", "run", "--reason", "enough")).code).toBe(0);
    lab.open("third");
    expect((await later.ended).code).toBe(0);
    const report = await reported([]);
    expect(report).toMatchObject({ phase: "finished", reason: "enough", verified: { ok: true } });
    expect(of(report.events, "operator.acted").map(({ data }) => [data.action, data.reason, data.subject])).toEqual([
      ["pause", "lunch", null],
      ["resume", "resumed from the command line", null],
      ["retract", "it looked", "t2"],
      ["finish", "enough", null],
    ]);
    expect(of(report.events, "leader.changed").map(({ data }) => [data.trial, data.cause])).toEqual([
      ["t0", "calibration"],
      ["t1", "promotion"],
      ["t2", "promotion"],
      ["t1", "retraction"],
      ["t3", "promotion"],
    ]);
    // What was open when it was told to finish came to its end; nothing new was begun.
    expect(of(report.events, "trial.admitted").map(({ data }) => data.trial)).toEqual(["t0", "t1", "t2", "t3"]);
    expect(await lab.leftovers()).toEqual([]);
  });

  it("cancels what runs at once, and nothing of it is left", async () => {
    lab.write(gated(proposes(waiting("never", 300))));
    const owner = trialist(...starts(1));
    await untilRunning("m3");
    const begun = Date.now();
    expect((await said("cancel", "run", "--reason", "wrong data")).code).toBe(0);
    expect((await owner.ended).code).toBe(2);
    expect(Date.now() - begun).toBeLessThan(30_000);
    const report = await reported([]);
    expect(report).toMatchObject({ phase: "cancelled", reason: "wrong data", verified: { ok: true } });
    expect(of(report.events, "trial.ended").at(-1)?.data).toMatchObject({ trial: "t1", status: "cancelled" });
    expect(await lab.leftovers()).toEqual([]);
    expect(lab.scratch()).toEqual([]);
  });

  it("is served by the command's own process when nobody owns the run", async () => {
    lab.write(numberPack({ seed, words: [proposes(scoring(300))], rule: "any" }));
    await drive(lab, [create(1), { ...go, death: { side: "after", append: 4 } } as Step]).ended;
    expect(await said("pause", "run", "--reason", "later")).toMatchObject({ code: 0, stdout: expect.not.stringMatching(/was told/) });
    expect(stateNow()?.phase).toBe("paused");
    expect(await reported([go])).toMatchObject({ phase: "finished", verified: { ok: true } });
  });
});

describe("Ctrl-C", () => {
  it("once: finishes the step, saves, and can be resumed", async () => {
    lab.write(gated(proposes(waiting("end", 300)), proposes(scoring(400))));
    const owner = trialist(...starts(2));
    await untilRunning("m3");
    owner.child.kill("SIGINT");
    await until("it is paused", (state) => state.phase === "paused");
    lab.open("end");
    const ended = await owner.ended;
    expect([ended.code, ended.stderr]).toEqual([130, expect.stringMatching(/trialist resume run/)]);
    const halted = await reported([]);
    expect(halted).toMatchObject({ phase: "paused", verified: { ok: true } });
    expect(
      of(halted.events, "stage.ended")
        .filter(({ data }) => data.measurement === "m3")
        .map(({ data }) => data.stage),
    ).toEqual(["train"]);
    const report = await reported([go]);
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(of(report.events, "stage.started").filter(({ data }) => data.measurement === "m3")).toHaveLength(2);
    expect(of(report.events, "attempt.started")).toHaveLength(4);
  });

  it("twice: leaves at once, and what still runs is adopted", async () => {
    lab.write(gated(proposes(waiting("end", 300))));
    const owner = trialist(...starts(1));
    await untilRunning("m3");
    owner.child.kill("SIGINT");
    await until("it is paused", (state) => state.phase === "paused");
    owner.child.kill("SIGINT");
    // What it was waiting for waits for us: only a process that leaves comes to its end now.
    const left = await Promise.race([owner.ended, sleep(20_000, null)]);
    lab.open("end");
    await owner.ended;
    expect(left?.code).toBe(130);
    const report = await reported([go]);
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(of(report.events, "attempt.started")).toHaveLength(3);
    expect(await lab.leftovers()).toEqual([]);
  });

  it("twice while a researcher thinks: its answer is found, not asked for again and not held against it", async () => {
    lab.write(numberPack({ seed, words: [`sleep 8; ${proposes(scoring(300))}`], rule: "any" }));
    const owner = trialist(...starts(1));
    await until("a call is open", (state) => state.counters.call === 1);
    await sleep(1500);
    owner.child.kill("SIGINT");
    await until("it is paused", (state) => state.phase === "paused");
    owner.child.kill("SIGINT");
    expect((await owner.ended).code).toBe(130);
    expect(of((await reported([])).events, "call.answered")).toEqual([]);
    const report = await reported([go]);
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(of(report.events, "call.failed")).toEqual([]);
    expect(of(report.events, "call.answered").map(({ data }) => data.round)).toEqual([1]);
  });

  it("of a closed terminal: the run is saved and can be resumed", async () => {
    lab.write(gated(proposes(waiting("end", 300))));
    const owner = trialist(...starts(1));
    await untilRunning("m3");
    owner.child.stdout?.destroy();
    owner.child.stderr?.destroy();
    owner.child.kill("SIGHUP");
    await until("it is paused", (state) => state.phase === "paused");
    lab.open("end");
    await owner.ended;
    const report = await reported([go]);
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(of(report.events, "attempt.started")).toHaveLength(3);
  });
});

describe("a bad host", () => {
  it("sets its clock back: order does not hang on it, and no time is negative", async () => {
    const words = [proposes(scoring(300)), proposes({ "main.sh": "exit 3\n" }), proposes(scoring(500))];
    lab.write(numberPack({ seed, words }));
    const undisturbed = await reported([create(3), go]);
    const other = new Lab();
    try {
      other.write(numberPack({ seed, words }));
      const [report] = await driven(other, [create(3), go, tell], { clock: { fromLook: 10, backMs: 3_600_000 } });
      if (report === undefined) throw new Error("no report");
      expect(report).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
      const times = report.events.map(({ at }) => at);
      expect(Math.min(...times)).toBeLessThan((times[0] ?? 0) - 10 * 3_600_000);
      expect(report.events.map(({ sequence }) => sequence)).toEqual(report.events.map((_, index) => index + 1));
      expect(report.projection).toEqual(undisturbed.projection);
      expect(report.activeMs).toBeGreaterThanOrEqual(0);
      expect(report.activeMs).toBeLessThan(120_000);
    } finally {
      other.remove();
    }
  });

  it("has a full disk: the run stops, says so, and goes on when there is room", async () => {
    const words = [proposes(scoring(300)), proposes(scoring(500))];
    lab.write(numberPack({ seed, words }));
    const undisturbed = await reported([create(2), go]);
    for (const fullFrom of [3, 7, 12, 20]) {
      const name = `full-${fullFrom}`;
      const named = (step: Step): Step => ({ ...step, name });
      const { code, stderr } = await drive(lab, [create(2), go].map(named), { fullFrom }).ended;
      expect([code, stderr]).toEqual([3, expect.stringMatching(/^thrown: LedgerFullError: .*Free space, then resume the run.*\n$/)]);
      const [report] = await driven(lab, [go, tell].map(named));
      expect(report).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
      expect(report?.projection).toEqual(undisturbed.projection);
    }
    expect(await lab.leftovers()).toEqual([]);
  });

  it("has a full disk while nothing but a sign of life is written", async () => {
    lab.write(numberPack({ seed, words: [proposes({ "main.sh": `sleep 8; ${scoring(300)["main.sh"]}` })], rule: "any" }));
    const undisturbed = await reported([create(1), go]);
    const named = (step: Step): Step => ({ ...step, name: "beating" });
    // The heartbeat is the first to find no room: the trial's program runs for longer than one beat.
    const { code, stderr } = await drive(lab, [create(1), go].map(named), { fullWhile: "m3" }).ended;
    expect([code, stderr]).toEqual([3, expect.stringMatching(/^thrown: LedgerFullError/)]);
    const [report] = await driven(lab, [go, tell].map(named));
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(report?.projection).toEqual(undisturbed.projection);
  });
});
