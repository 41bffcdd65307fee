import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLocalExecutor } from "../../src/adapters/executors/local.js";
import { readStat } from "../../src/adapters/executors/process-identity.js";
import { findCgroups } from "../../src/adapters/sandbox/cgroup.js";
import type { Executor, StageExecution } from "../../src/core/ports/executor.js";
import { type Bench, eventually, makeBench, processesSaying, stage, text } from "./executor-contract.js";

let root: string;
let bench: Bench;
const opened: Executor[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "trialist-root-"));
  bench = await makeBench();
});

afterEach(async () => {
  for (const executor of opened.splice(0)) await executor.close();
  await eventually(() => supervisors().length === 0);
  await rm(root, { recursive: true, force: true });
  await rm(bench.folder, { recursive: true, force: true });
});

function open(options: { idleMs?: number; cgroups?: boolean } = {}): Executor {
  const executor = createLocalExecutor({ root, idleMs: 300, ...options });
  opened.push(executor);
  return executor;
}

/** Handles of executions, and of what is laid out for the next one; some of those vanish while we look. */
function handles(): { supervisor: { pid: number; startTicks: number }; cgroups: string[] }[] {
  const folder = join(root, "executions");
  return (existsSync(folder) ? readdirSync(folder) : []).flatMap((name) => {
    try {
      return [JSON.parse(readFileSync(join(folder, name, "handle.json"), "utf8"))];
    } catch {
      return [];
    }
  });
}

/** Supervisors of this test's root that run. */
function supervisors(): number[] {
  const alive = handles().filter(({ supervisor }) => {
    const stat = readStat(supervisor.pid);
    return stat !== null && stat[0] !== "Z" && Number(stat[19]) === supervisor.startTicks;
  });
  return [...new Set(alive.map(({ supervisor }) => supervisor.pid))];
}

function leftCgroups(): string[] {
  return handles().flatMap(({ cgroups }) => cgroups.filter((each) => existsSync(each)));
}

async function startRunner(execution: StageExecution): Promise<ChildProcess> {
  const program = fileURLToPath(new URL("./executor-runner.ts", import.meta.url));
  const runner = spawn(process.execPath, ["--import", "tsx", program, JSON.stringify({ root, execution })], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((resolve, reject) => {
    runner.stdout?.on("data", (piece: Buffer) => (piece.toString().includes("started") ? resolve() : undefined));
    runner.once("exit", () => reject(new Error("the runner ended before it started anything")));
  });
  return runner;
}

async function killed(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

const untilTold = "echo early; while [ ! -e go ]; do sleep 0.02; done; echo late; echo 1 > $OUTPUT/result; exit 7";

describe("the runner dies", () => {
  test("its stage goes on, and another runner adopts it and gets its outcome", async () => {
    const execution = stage(bench, "bubblewrap", untilTold, {
      outputFolder: bench.output,
      outputs: ["result"],
      collectInto: bench.collected,
    });
    await killed(await startRunner(execution));
    const second = open();
    expect(await second.find(execution.id)).toEqual({ state: "running" });
    await expect(second.start(execution)).rejects.toMatchObject({ name: "ExecutionExistsError" });
    const [supervisor] = supervisors();
    const waiting = second.wait(execution.id);
    writeFileSync(join(bench.workspace, "go"), "");
    expect(await waiting).toMatchObject({
      state: "ended",
      outcome: { exitCode: 7, limit: null, outputs: [{ path: "result", state: "present", bytes: 2 }] },
    });
    expect(text((await second.output(execution.id)).stdout)).toBe("early\nlate\n");
    expect(supervisors()).toEqual([supervisor]);
  });

  test("with nobody left the stage comes to its end, then the supervisor ends, and the outcome is found later", async () => {
    const execution = stage(bench, "bubblewrap", untilTold);
    await killed(await startRunner(execution));
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(supervisors()).toHaveLength(1);
    writeFileSync(join(bench.workspace, "go"), "");
    expect(await eventually(() => supervisors().length === 0)).toBe(true);
    const later = open();
    expect(await later.find(execution.id)).toMatchObject({ state: "ended", outcome: { exitCode: 7 } });
    expect(await later.wait(execution.id)).toMatchObject({ state: "ended" });
    expect(text((await later.output(execution.id)).stdout)).toBe("early\nlate\n");
    expect(leftCgroups()).toEqual([]);
  });

  test("limits are held without it", async () => {
    const word = `orphan-${process.pid}`;
    const execution = stage(bench, "bubblewrap", `while :; do sleep 0.1; done; : ${word}`);
    await killed(await startRunner({ ...execution, limits: { ...execution.limits, wallMs: 4000 } }));
    expect(processesSaying(word).length).toBeGreaterThan(0);
    expect(await eventually(() => processesSaying(word).length === 0)).toBe(true);
    expect(await open().wait(execution.id)).toMatchObject({ state: "ended", outcome: { limit: "wall" } });
  });
});

describe("the supervisor dies", () => {
  test.each([
    ["bubblewrap", true],
    ["bubblewrap", false],
    ["none", true],
    ["none", false],
  ] as const)("the tree dies, the execution is gone, and the next one starts (%s, cgroups %s)", async (sandbox, cgroups) => {
    const word = `bereft-${process.pid}-${sandbox}-${cgroups}`;
    const executor = open({ cgroups });
    const execution = stage(bench, sandbox, `setsid -f sh -c 'sleep 300; : ${word}'; sleep 300; : ${word}`);
    await executor.start(execution);
    expect(await eventually(() => processesSaying(word).length >= 2)).toBe(true);
    const waiting = executor.wait(execution.id);
    const [supervisor] = supervisors();
    process.kill(supervisor ?? 0, "SIGKILL");
    expect(await waiting).toEqual({ state: "gone", reason: "its supervisor died before it ended" });
    expect(processesSaying(word)).toEqual([]);
    const orphaned = leftCgroups();
    const next = stage(bench, sandbox, "exit 3");
    await executor.start(next);
    expect(await executor.wait(next.id)).toMatchObject({ state: "ended", outcome: { exitCode: 3 } });
    expect(await executor.find(execution.id)).toMatchObject({ state: "gone" });
    await expect(executor.start(execution)).rejects.toMatchObject({ name: "ExecutionExistsError" });
    expect(supervisors()).not.toContain(supervisor);
    expect(orphaned.filter((each) => existsSync(each))).toEqual([]);
  });

  test("ends from before are still found", async () => {
    const executor = open();
    const execution = stage(bench, "bubblewrap", "echo kept; exit 4");
    await executor.start(execution);
    const end = await executor.wait(execution.id);
    process.kill(supervisors()[0] ?? 0, "SIGKILL");
    expect(await eventually(() => supervisors().length === 0)).toBe(true);
    expect(await executor.find(execution.id)).toEqual(end);
    expect(text((await executor.output(execution.id)).stdout)).toBe("kept\n");
    // A successor cleans up after the dead one.
    await executor.start(stage(bench, "bubblewrap", "true"));
    expect(supervisors()).toHaveLength(1);
  });

  test("what a killed one leaves in the temporary folder goes with the next start of any run; what lives or is not ours stays", async () => {
    const runtimeFolderOf = (of: string): string =>
      (JSON.parse(readFileSync(join(of, "supervisor.json"), "utf8")) as { runtimeFolder: string }).runtimeFolder;
    const others = [await mkdtemp(join(tmpdir(), "trialist-root-")), await mkdtemp(join(tmpdir(), "trialist-root-"))];
    const unowned = await mkdtemp(join(tmpdir(), "trialist-"));
    const executors = others.map((other) => createLocalExecutor({ root: other, idleMs: 300 }));
    try {
      await open().start(stage(bench, "bubblewrap", "true"));
      const abandoned = runtimeFolderOf(root);
      for (const pid of supervisors()) process.kill(pid, "SIGKILL");
      expect(await eventually(() => supervisors().length === 0)).toBe(true);
      await executors[0]?.start(stage(bench, "bubblewrap", "true"));
      expect(existsSync(abandoned)).toBe(false);
      await executors[1]?.start(stage(bench, "bubblewrap", "true"));
      expect([...others.map(runtimeFolderOf), unowned].filter((folder) => !existsSync(folder))).toEqual([]);
    } finally {
      for (const executor of executors) await executor.close();
      expect(await eventually(() => others.every((other) => !existsSync(join(other, "supervisor.json"))))).toBe(true);
      for (const folder of [...others, unowned]) await rm(folder, { recursive: true, force: true });
    }
  });

  test("a record that a power loss has torn is gone, not an outcome", async () => {
    const executor = open();
    const execution = stage(bench, "bubblewrap", "true");
    await executor.start(execution);
    await executor.wait(execution.id);
    const file = join(root, "executions", execution.id.replaceAll("/", "+"), "outcome.json");
    writeFileSync(file, readFileSync(file).subarray(0, 100));
    expect(await executor.find(execution.id)).toEqual({ state: "gone", reason: "its recorded end is damaged" });
  });
});

describe("supervisors", () => {
  test("many runners at once share one", async () => {
    const executors = Array.from({ length: 6 }, () => open());
    const executions = executors.map((_, index) => stage(bench, "bubblewrap", `exit ${index}`));
    await Promise.all(executors.map((executor, index) => executor.start(executions[index]!)));
    const ends = await Promise.all(executors.map((executor, index) => executor.wait(executions[index]!.id)));
    expect(ends.map((end) => (end.state === "ended" ? end.outcome.exitCode : end.state))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(supervisors()).toHaveLength(1);
  });

  test("an idle one ends by itself, leaves nothing, and is replaced when there is work", async () => {
    const executor = open();
    const first = stage(bench, "bubblewrap", "true");
    await executor.start(first);
    await executor.wait(first.id);
    const { runtimeFolder } = JSON.parse(readFileSync(join(root, "supervisor.json"), "utf8")) as { runtimeFolder: string };
    expect(existsSync(runtimeFolder)).toBe(true);
    await executor.close();
    expect(await eventually(() => supervisors().length === 0)).toBe(true);
    expect(existsSync(runtimeFolder)).toBe(false);
    expect(leftCgroups()).toEqual([]);
    expect(readdirSync(join(root, "executions"))).toEqual([first.id.replaceAll("/", "+")]);
    const second = stage(bench, "bubblewrap", "exit 1");
    await executor.start(second);
    expect(await executor.wait(second.id)).toMatchObject({ state: "ended", outcome: { exitCode: 1 } });
  });

  test("an address that leads nowhere is no obstacle", async () => {
    writeFileSync(join(root, "supervisor.json"), JSON.stringify({ socket: join(root, "nobody"), runtimeFolder: join(root, "nothing") }));
    const executor = open();
    const execution = stage(bench, "bubblewrap", "true");
    await executor.start(execution);
    expect(await executor.wait(execution.id)).toMatchObject({ state: "ended" });
  });

  test("printing without end costs it neither memory nor disk", async () => {
    const executor = open();
    const execution = stage(bench, "bubblewrap", "head -c 1500000000 /dev/zero");
    await executor.start({ ...execution, limits: { ...execution.limits, outputBytes: 2_000_000_000 } });
    const found = await executor.wait(execution.id);
    expect(found).toMatchObject({ outcome: { exitCode: 0, stdout: { bytes: 1_500_000_000, omittedBytes: 1_500_000_000 - 128 * 1024 } } });
    const status = readFileSync(`/proc/${supervisors()[0]}/status`, "utf8");
    expect(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1])).toBeLessThan(300_000);
    expect(readFileSync(join(root, "executions", execution.id.replaceAll("/", "+"), "output.bin")).byteLength).toBe(128 * 1024);
  });
});

describe.runIf(findCgroups().memory !== null)("memory, counted by the kernel", () => {
  test("a child that is killed for memory makes the stage over budget, even if its parent goes on", async () => {
    const executor = open();
    const program = "blocks = []\nwhile True: blocks.append(bytearray(1_000_000))";
    const execution = stage(bench, "bubblewrap", `/usr/bin/python3 -I -c '${program}'; echo went on; exit 0`);
    await executor.start({ ...execution, limits: { ...execution.limits, memoryBytes: 64 * 2 ** 20 } });
    const found = await executor.wait(execution.id);
    expect(found).toMatchObject({ state: "ended", outcome: { limit: "memory", guarantees: { memory: findCgroups().memory } } });
  });
});
