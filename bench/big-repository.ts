import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Cache } from "../src/adapters/environments/cache.js";
import { readCandidate } from "../src/adapters/environments/freeze.js";
import { createLocalExecutor } from "../src/adapters/executors/local.js";
import { bubblewrapArguments } from "../src/adapters/sandbox/bubblewrap.js";
import { giveToSandbox } from "../src/adapters/sandbox/identity.js";
import { assertUsable, probeSandbox } from "../src/adapters/sandbox/probe.js";
import { freezeFolder, readyEnvironment } from "../src/app/environments.js";
import { AttemptFolders } from "../src/research/engine/attempt-folders.js";
import { stageExecution } from "../src/research/engine/stage-execution.js";
import { type BenchResult, judged, median, ms } from "./result.js";
import { bareSandbox, trivialStage } from "./sandbox-start.js";

const bars = { startMs: 100, firstSeconds: 30, againSeconds: 3, disk: 2 };
const shape = { packages: 10, modules: 20, files: 100, fileBytes: 100_000 };
const editableBytes = 4000;
const restMs = 3000;
const rounds = 30;
const warmUp = 3;

const contract = `schema: trialist/environment@1
name: big-repository
surface: { editable: ["package*/module*/edit.py"] }
baseline: .
stages: [{ name: train, run: "true", limits: { wall: 1 min } }]
metrics: [{ name: seconds, direction: minimize, from: { wall: train } }]
`;

/**
 * A git repository of 20,000 files and 2 GB (mostly holes) with ten editable files in ten folders of 101 files. Loading
 * and freezing it, the first time and again; then stages of a candidate, from its snapshot to the end of `true`, over
 * bubblewrap alone in an empty workspace, in turns; and the bytes that such a stage's folder holds.
 */
export async function bigRepository(): Promise<BenchResult[]> {
  const folder = mkdtempSync(join(tmpdir(), "trialist-bench-repository-"));
  chmodSync(folder, 0o755);
  try {
    makeRepository(join(folder, "repository"));
    // Files that changed a moment ago are never taken for known; nobody freezes a repository in the second that it was made.
    await sleep(restMs);
    const host = { cache: await Cache.open({ TRIALIST_CACHE: join(folder, "cache") }), variables: {} };
    const seconds: number[] = [];
    for (const _ of ["first", "again"]) {
      const begun = performance.now();
      await freezeFolder(host, join(folder, "repository"));
      seconds.push((performance.now() - begun) / 1000);
    }
    const [first = Number.NaN, again = Number.NaN] = seconds;
    const stages = await timeStages(host, join(folder, "repository"));
    return rows(first, again, stages);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Stages {
  readonly ours: readonly number[];
  readonly bare: readonly number[];
  readonly writtenBytes: number;
  readonly changedBytes: number;
  readonly mounts: number;
}

async function timeStages(host: Parameters<typeof freezeFolder>[0], repository: string): Promise<Stages> {
  const { loaded, frozen } = await freezeFolder(host, repository);
  const candidate = await readCandidate(loaded.folder, loaded.baseline);
  const report = await probeSandbox();
  assertUsable(report);
  const executor = createLocalExecutor({ root: host.cache.folder("executors", "bench") });
  const workspace = host.cache.folder("scratch", "bare");
  mkdirSync(workspace);
  await giveToSandbox(workspace);
  const argv = bubblewrapArguments(trivialStage("bare", workspace), report.features);
  const [ours, bare]: [number[], number[]] = [[], []];
  let [writtenBytes, mounts] = [0, 0];
  try {
    const { prepared } = await readyEnvironment(host, frozen, executor, "bubblewrap", () => undefined);
    const [stage] = prepared.environment.stages;
    if (stage === undefined) throw new Error("the repository's environment has a stage");
    for (let round = 0; round < rounds + warmUp; round++) {
      const without = await bareSandbox(argv);
      const folders = new AttemptFolders(host.cache.folder("scratch", `m${round}`), giveToSandbox);
      const begun = performance.now();
      const execution = await stageExecution({
        ...{ id: `m${round}.1/train-1`, stage, repeat: 1, seed: 0, sandbox: "bubblewrap", prepared, folders },
        manifest: candidate.manifest,
        content: (digest) => candidate.contents.get(digest) ?? new Uint8Array(),
        ...{ hostEnvironment: {}, collectMaxBytes: 1, gpus: null },
      });
      await executor.start(execution);
      await executor.wait(execution.id);
      const took = performance.now() - begun;
      [writtenBytes, mounts] = [ownBytes(folders.root), execution.mounts.length];
      await folders.remove();
      if (round < warmUp) continue;
      ours.push(took);
      bare.push(without);
    }
  } finally {
    await executor.close();
  }
  return { ours, bare, writtenBytes, mounts, changedBytes: candidate.manifest.files.reduce((sum, file) => sum + file.bytes, 0) };
}

function rows(first: number, again: number, stages: Stages): BenchResult[] {
  const over = median(stages.ours) - median(stages.bare);
  return [
    judged(
      {
        ...{ name: "big-repository-start", value: over, unit: "ms over bare bubblewrap" },
        ours: ms(median(stages.ours)),
        limit: ms(median(stages.bare)),
        note: `medians of ${rounds} stages in turns; 20,000 files, 2 GB, ten editable; ${stages.mounts} mounts`,
      },
      { atMost: bars.startMs },
    ),
    judged(
      {
        ...{ name: "big-repository-disk", value: stages.writtenBytes / stages.changedBytes, unit: "× the candidate's bytes" },
        ours: `${stages.writtenBytes} bytes in the stage's folder`,
        limit: `${stages.changedBytes} bytes`,
        note: "files that share no bytes with the frozen copy",
      },
      { atMost: bars.disk },
    ),
    judged(
      {
        ...{ name: "big-repository-freeze", value: first, unit: "s" },
        ...{ ours: `${first.toFixed(1)} s to load and freeze it`, limit: `${bars.firstSeconds} s`, note: "once, into an empty cache" },
      },
      { atMost: bars.firstSeconds },
    ),
    judged(
      {
        ...{ name: "big-repository-again", value: again, unit: "s" },
        ...{ ours: `${again.toFixed(2)} s to load it and find it frozen`, limit: `${bars.againSeconds} s`, note: "once, nothing changed" },
      },
      { atMost: bars.againSeconds },
    ),
  ];
}

function makeRepository(root: string): void {
  makeFiles(root, "holes");
  writeFileSync(join(root, "environment.yaml"), contract);
  spawnSync("git", ["init", "-q", root]);
}

/** 20,000 files of 100 kB in 200 folders, and ten small editable ones. `holes`: all but the beginnings takes no space on the disk. */
export function makeFiles(root: string, content: "holes" | "bytes"): void {
  const bytes = content === "bytes" ? randomBytes(shape.fileBytes) : Buffer.alloc(0);
  for (let index = 0; index < shape.packages * shape.modules; index++) {
    const folder = join(root, `package${Math.floor(index / shape.modules)}`, `module${index}`);
    mkdirSync(folder, { recursive: true });
    for (let file = 0; file < shape.files; file++) {
      const opened = openSync(join(folder, `file${file}.bin`), "w");
      if (content === "bytes") writeSync(opened, bytes);
      writeSync(opened, `${index} ${file}`, 0);
      ftruncateSync(opened, shape.fileBytes);
      closeSync(opened);
    }
    if (index % shape.modules === 0) writeFileSync(join(folder, "edit.py"), `# ${index}\n`.padEnd(editableBytes, "#"));
  }
}

function ownBytes(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files
    .map((entry) => lstatSync(join(entry.parentPath, entry.name)))
    .reduce((sum, facts) => sum + (facts.nlink === 1 ? facts.size : 0), 0);
}
