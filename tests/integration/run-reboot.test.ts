import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identify } from "../../src/adapters/executors/process-identity.js";
import { runKey } from "../../src/app/executors.js";
import { Project } from "../../src/app/project.js";
import { commandLine, drive, driven } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, proposes, scoring } from "../support/lab.js";
import type { Report, Step } from "../support/run-driver.js";

/**
 * A machine that starts anew: every process is gone at once, the boot has another id, and process numbers begin again, so
 * that those on record are somebody else's now.
 */
const seed = 4;
let lab: Lab;
let strangers: ChildProcess[] = [];
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => {
  for (const { pid } of strangers) if (pid !== undefined) send(-pid, "SIGKILL");
  strangers = [];
  lab.remove();
});

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

const budget = { trials: 3, costUsd: null, tokens: null, computeMs: null, wallMs: null };
const request = { seed, budget, organization: { name: "tree", configuration: { drafts: 50 } } };
const go: Step = { do: "work", name: "run" };
const tell: Step = { do: "report", name: "run" };

function executions(): string {
  return join(lab.cache, "executors", runKey(new Project(lab.project).runFolder("run")), "executions");
}

/** The program of the slow trial runs. */
async function untilATrialRuns(): Promise<void> {
  await expect.poll(() => lab.processes().filter(({ command }) => /^sleep 4 /.test(command)).length, { timeout: 60_000 }).toBe(1);
}

/** Another run's sandbox, which has a process number of the boot before: as bubblewrap tells it. */
async function stranger(): Promise<number> {
  const line = "exec bwrap --ro-bind / / --unshare-all --json-status-fd 1 sleep 120";
  const child = spawn("sh", ["-c", line], { stdio: ["ignore", "pipe", "ignore"], detached: true });
  strangers.push(child);
  return new Promise((resolve) => {
    child.stdout?.on("data", (piece: Buffer) => {
      const found = /"child-pid": (\d+)/.exec(piece.toString());
      if (found !== null) resolve(Number(found[1]));
    });
  });
}

/** Every record that names a process names one that lives now, of another boot. */
async function startAnew(driver: ChildProcess): Promise<{ readonly records: number; readonly innocent: number }> {
  // As at a power loss: nobody hears of anybody's end.
  for (const signal of ["SIGSTOP", "SIGSTOP", "SIGKILL"] as const) {
    for (const pid of [driver.pid ?? 0, ...lab.processes().map((each) => each.pid)]) send(pid, signal);
  }
  expect(await lab.leftovers()).toEqual([]);
  const innocent = await stranger();
  const supervisor = { ...identify(process.pid), bootId: "00000000-0000-4000-8000-000000000000" };
  const folders = readdirSync(executions()).map((name) => join(executions(), name));
  const files = folders.map((folder) => join(folder, "handle.json")).filter(existsSync);
  for (const file of files) {
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), supervisor }));
    const status = join(file, "..", "status");
    writeFileSync(status, readFileSync(status, "utf8").replace(/"child-pid": \d+/, `"child-pid": ${innocent}`));
  }
  const owner = join(new Project(lab.project).runFolder("run"), "owner.json");
  const info = JSON.parse(readFileSync(owner, "utf8")) as Record<string, unknown>;
  writeFileSync(owner, JSON.stringify({ ...info, pid: process.pid, bootId: supervisor.bootId }));
  return { records: files.length, innocent };
}

async function resumed(): Promise<Report> {
  const [report] = await driven(lab, [go, tell]);
  if (report === undefined) throw new Error("no report");
  return report;
}

const slow = proposes({ "main.sh": `sleep 4; ${scoring(500)["main.sh"]}` });

describe("a machine that starts anew", () => {
  it("in the middle of a trial: what vanished is run again, nothing twice, and the run ends as an undisturbed one", async () => {
    lab.write(numberPack({ seed, words: [proposes(scoring(300)), slow, proposes(scoring(400))], rule: "any" }));
    const [reference] = await driven(lab, [
      { do: "create", name: "undisturbed", request },
      { do: "work", name: "undisturbed" },
      { do: "report", name: "undisturbed" },
    ]);
    const { child, ended } = drive(lab, [{ do: "create", name: "run", request }, go]);
    await untilATrialRuns();
    const { records, innocent } = await startAnew(child);
    await ended;
    expect(records).toBeGreaterThan(0);
    expect((await commandLine(lab, "list").ended).stdout).toMatch(/run/);

    const report = await resumed();
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
    const ends = of(report.events, "attempt.ended").map(({ data }) => data);
    const interrupted = ends.filter(({ result }) => result.kind === "interrupted");
    expect(interrupted.map(({ result }) => result)).toEqual([
      { kind: "interrupted", reason: expect.stringContaining("the machine started anew") },
    ]);
    const again = of(report.events, "attempt.started").filter(({ data }) => data.measurement === interrupted[0]?.measurement);
    expect(again.map(({ data }) => data.attempt)).toEqual([1, 2]);
    const measured = ends.filter(({ result }) => result.kind === "measured").map(({ measurement }) => measurement);
    expect(new Set(measured).size).toBe(measured.length);
    expect(of(report.events, "trial.ended")).toHaveLength(4);
    expect(report.projection).toEqual(reference?.projection);
    // Whoever has the number of one of our processes now is left alone.
    expect(readFileSync(`/proc/${innocent}/status`, "utf8")).toMatch(/^State:\s+[RS]/m);
    expect(await lab.leftovers()).toEqual([]);
    expect(lab.scratch()).toEqual([]);
  });

  it("before the disk had the record of what was started: that is made again too", async () => {
    lab.write(numberPack({ seed, words: [slow], rule: "any" }));
    const { child, ended } = drive(lab, [{ do: "create", name: "run", request: { ...request, budget: { ...budget, trials: 1 } } }, go]);
    await untilATrialRuns();
    await startAnew(child);
    await ended;
    // The folder's name is there, and its file has no content yet.
    writeFileSync(join(executions(), "m3.1+train-1", "handle.json"), "");
    const report = await resumed();
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
    const ends = of(report.events, "attempt.ended").filter(({ data }) => data.measurement === "m3");
    expect(ends.map(({ data }) => data.result.kind)).toEqual(["interrupted", "measured"]);
  });
});

describe("looking on", () => {
  it("after the end: the answer comes at once, and again", async () => {
    lab.write(numberPack({ seed, words: [proposes(scoring(300))], rule: "any" }));
    await driven(lab, [{ do: "create", name: "run", request: { ...request, budget: { ...budget, trials: 1 } } }, go]);
    const lookers = [commandLine(lab, "attach", "run"), commandLine(lab, "attach", "run", "--json")];
    const [words, document] = await Promise.all(lookers.map(({ ended }) => ended));
    expect([words?.code, words?.stdout]).toEqual([0, expect.stringContaining("run finished")]);
    expect([document?.code, JSON.parse(document?.stdout ?? "")]).toEqual([0, expect.objectContaining({ state: "finished" })]);
  });
});
