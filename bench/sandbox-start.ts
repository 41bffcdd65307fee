import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalExecutor } from "../src/adapters/executors/local.js";
import { bubblewrapArguments } from "../src/adapters/sandbox/bubblewrap.js";
import { giveToSandbox, sandboxUser } from "../src/adapters/sandbox/identity.js";
import { assertUsable, probeSandbox } from "../src/adapters/sandbox/probe.js";
import type { StageExecution } from "../src/core/ports/executor.js";
import { type BenchResult, judged, median, ms } from "./result.js";

const bar = 1.2;
const rounds = 150;
const warmUp = 15;
const bubblewrap = "bwrap";

/** A stage that runs `true` in an empty workspace. */
export function trivialStage(id: string, workspace: string): StageExecution {
  return {
    id,
    command: "true",
    workingDirectory: "/trialist/workspace",
    environment: { TRIALIST_SEED: "1" },
    mounts: [{ source: workspace, target: "/trialist/workspace", mode: "read-write" }],
    limits: {
      wallMs: 60_000,
      cpuMs: 60_000,
      memoryBytes: 2 ** 30,
      cpus: 1,
      processes: 64,
      diskBytes: 2 ** 26,
      outputBytes: 2 ** 20,
    },
    graceMs: 1000,
    outputFolder: null,
    outputs: [],
    collectInto: null,
    collectMaxBytes: 1,
    writableFolders: [workspace],
    sandbox: "bubblewrap",
    keepHeadBytes: 2 ** 16,
    keepTailBytes: 2 ** 16,
  };
}

/** Milliseconds from the start of bubblewrap alone to its end. */
export function bareSandbox(argv: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    const child = spawn(bubblewrap, argv, { cwd: "/", stdio: ["ignore", "pipe", "pipe"], ...(sandboxUser() ?? {}) });
    child.once("error", reject);
    child.once("close", (code) => {
      if (code === 0) resolve(performance.now() - begun);
      else reject(new Error(`bare bubblewrap ended with ${code}`));
    });
  });
}

/** From asking for a start to knowing the end of `true`, against bubblewrap alone with the same arguments, in turns. */
export async function sandboxStart(): Promise<BenchResult[]> {
  const folder = await mkdtemp(join(tmpdir(), "trialist-bench-"));
  const workspace = await mkdtemp(join(tmpdir(), "trialist-bench-workspace-"));
  const report = await probeSandbox();
  assertUsable(report);
  await giveToSandbox(workspace);
  const argv = bubblewrapArguments(trivialStage("bare", workspace), report.features);
  const executor = createLocalExecutor({ root: folder });
  const ours: number[] = [];
  const theirs: number[] = [];
  try {
    for (let round = 0; round < rounds + warmUp; round += 1) {
      const without = await bareSandbox(argv);
      const begun = performance.now();
      await executor.start(trivialStage(`r${round}/true`, workspace));
      await executor.wait(`r${round}/true`);
      const withUs = performance.now() - begun;
      if (round < warmUp) continue;
      theirs.push(without);
      ours.push(withUs);
    }
  } finally {
    await executor.close();
    await rm(workspace, { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  }
  const row = {
    name: "sandbox-start",
    value: median(ours) / median(theirs),
    unit: "× bare bubblewrap",
    ours: ms(median(ours)),
    limit: ms(median(theirs)),
    note: `medians of ${rounds} starts of \`true\` in turns, same arguments`,
  };
  return [judged(row, { atMost: bar })];
}
