import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { makeFiles } from "./big-repository.js";
import { type BenchResult, judged, secondsOf } from "./result.js";

const barSeconds = 30;
const restMs = 3000;
const program = fileURLToPath(new URL("../dist/interfaces/cli/main.js", import.meta.url));

/**
 * From nothing to a calibrated baseline, as a user does it with the built program and an empty cache: `init --yes` on a git
 * repository of 20,000 files and 2 GB (real bytes, all committed to the index) with ten editable files, then `run` until it
 * says that it is calibrated. The script is one `echo`, so that nearly all of it is trialist's own.
 */
export async function firstBaseline(): Promise<BenchResult[]> {
  const folder = mkdtempSync(join(tmpdir(), "trialist-bench-first-"));
  chmodSync(folder, 0o755);
  const [repository, cache] = [join(folder, "repository"), join(folder, "cache")];
  const environment = { PATH: process.env["PATH"], HOME: process.env["HOME"], TRIALIST_CACHE: cache };
  try {
    mkdirSync(cache);
    makeFiles(repository, "bytes");
    writeFileSync(join(repository, "train.sh"), 'echo "score: 1"\n');
    execFileSync("git", ["init", "-q", repository]);
    execFileSync("git", ["-C", repository, "add", "."]);
    await sleep(restMs);
    const flags = ["--edit", "package*/module*/edit.py", "--run", "sh train.sh", "--metric", "score", "--direction", "maximize"];
    const init = secondsOf(() => {
      execFileSync(process.execPath, [program, "init", "--yes", ...flags], {
        cwd: repository,
        env: environment,
        stdio: ["ignore", "ignore", "inherit"],
      });
    });
    const calibrated = await secondsUntilCalibrated(repository, environment);
    return [row(init, calibrated)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Starts a run and ends it when its baseline is calibrated. */
async function secondsUntilCalibrated(repository: string, environment: NodeJS.ProcessEnv): Promise<number> {
  const begun = performance.now();
  const words = ["run", ".", "--researcher", "command:sleep 60", "--max-trials", "1"];
  const run = spawn(process.execPath, [program, ...words], { cwd: repository, env: environment, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise<void>((resolve) => run.once("close", () => resolve()));
  let seconds = Number.NaN;
  for await (const line of createInterface({ input: run.stderr })) {
    if (!line.startsWith("calibrated:")) continue;
    seconds = (performance.now() - begun) / 1000;
    run.kill("SIGINT");
    run.kill("SIGINT");
  }
  await ended;
  return seconds;
}

function row(init: number, calibrated: number): BenchResult {
  return judged(
    {
      ...{ name: "first-baseline", value: init + calibrated, unit: "s" },
      ours: `${init.toFixed(1)} s init, ${calibrated.toFixed(1)} s to the calibrated baseline`,
      limit: `${barSeconds} s`,
      note: "once, into an empty cache; 20,000 files, 2 GB of real bytes, ten editable; the script is one echo, measured seven times",
    },
    { atMost: barSeconds },
  );
}
