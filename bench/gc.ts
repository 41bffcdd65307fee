import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openSqliteLedger } from "../src/adapters/ledger/sqlite-ledger.js";
import { Project } from "../src/app/project.js";
import { digestOf } from "../src/core/protocol/canonical.js";
import { diskFolder } from "./ledger-events.js";
import { type BenchResult, judged } from "./result.js";
import { simulateRun } from "./simulated-trials.js";

const shape = { small: 1000, large: 10_000, orphans: 10_000 };
const bars = { seconds: 10, memory: 1.5 };

interface Looked {
  readonly ms: number;
  readonly peakMiB: number;
  readonly items: number;
}

/**
 * `trialist gc --yes` over a run of 10,000 trials and 10,000 old files of blobs that no run names, in a process of the
 * built package; its memory against that over a run of 1,000 trials.
 */
export async function gc(): Promise<BenchResult[]> {
  const [small, large] = [look(shape.small), look(shape.large)];
  if (large.items !== shape.orphans) throw new Error(`gc found ${large.items} files where there are ${shape.orphans}`);
  const note = `one run of ${shape.large} trials, ${shape.orphans} files removed; one round`;
  return [
    judged(
      {
        ...{ name: "gc-10000", value: large.ms / 1000, unit: "s" },
        ours: `${(large.ms / 1000).toFixed(1)} s`,
        limit: `${bars.seconds} s`,
        note,
      },
      { atMost: bars.seconds },
    ),
    judged(
      {
        ...{ name: "gc-10000-memory", value: large.peakMiB / small.peakMiB, unit: `× that of ${shape.small} trials` },
        ours: `${large.peakMiB.toFixed(0)} MiB at most`,
        limit: `${small.peakMiB.toFixed(0)} MiB`,
        note,
      },
      { atMost: bars.memory },
    ),
  ];
}

function look(trials: number): Looked {
  const folder = mkdtempSync(join(diskFolder(), "bench-gc-"));
  chmodSync(folder, 0o755);
  try {
    const project = new Project(folder);
    project.make();
    const ledger = openSqliteLedger(project.runFolder("run"), { mode: "create", blobFolder: project.blobFolder });
    simulateRun(ledger, trials);
    ledger.close();
    const long = new Date(Date.now() - 3_600_000);
    for (let index = 0; index < shape.orphans; index++) {
      const digest = digestOf(`orphan ${index}`);
      const path = join(project.blobFolder, digest.slice(0, 2), digest.slice(2));
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, "x");
      utimesSync(path, long, long);
    }
    const program = fileURLToPath(new URL("./gc-process.mjs", import.meta.url));
    const env = { ...process.env, TRIALIST_CACHE: join(folder, "cache") };
    return JSON.parse(execFileSync(process.execPath, [program, folder], { encoding: "utf8", env })) as Looked;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
