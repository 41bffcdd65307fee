import { execa } from "execa";
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Mount } from "../../core/ports/executor.js";
import type { PreparedEnvironment } from "../../core/ports/prepared-environment.js";
import { digestOf, digestOfValue } from "../../core/protocol/canonical.js";
import { TrialistError } from "../../core/protocol/errors.js";
import type { Cache } from "./cache.js";
import { findPython, type PythonInterpreter } from "./python-interpreter.js";

/** A runtime could not be built. */
export class RuntimeBuildError extends TrialistError {
  readonly kind = "infrastructure";
}

export type Runtime = PreparedEnvironment["runtime"];
/** Hears what long work is being done. */
export type Progress = (line: string) => void;

/** The system's interpreters: nothing to build. */
export const systemRuntime: Runtime = { path: [], mounts: [], environment: {} };

/** Binds an existing prefix (venv, conda, Node) read-only at its own path. Nothing freezes it. */
export function prefixRuntime(prefix: string): Runtime {
  return { path: [join(prefix, "bin")], mounts: [{ source: prefix, target: prefix, mode: "read-only" }], environment: {} };
}

/**
 * A virtual environment with exactly what a hashed lock file names, built once and kept by digest of the lock, the
 * interpreter and the platform. Two builders at once: the second waits for the first.
 */
export async function pythonRuntime(lockFile: string, requires: string, cache: Cache, progress: Progress): Promise<Runtime> {
  const python = await findPython(requires);
  const lock = await readFile(lockFile, "utf8");
  const name = digestOfValue({ lock: digestOf(lock), version: python.version, executable: python.executable, platform: process.platform, architecture: process.arch });
  const folder = cache.folder("runtimes", name);
  const marker = join(folder, ".complete");
  if (!(await exists(marker))) await buildOnce(folder, marker, lockFile, python, progress);
  const mounts: Mount[] = [{ source: folder, target: folder, mode: "read-only" }];
  if (!python.prefix.startsWith("/usr")) mounts.push({ source: python.prefix, target: python.prefix, mode: "read-only" });
  return { path: [join(folder, "bin")], mounts, environment: { VIRTUAL_ENV: folder } };
}

async function buildOnce(folder: string, marker: string, lockFile: string, python: PythonInterpreter, progress: Progress): Promise<void> {
  const guard = `${folder}.building`;
  for (let waited = 0; !(await claim(guard)); waited++) {
    if (waited === 0) progress("waiting for another process that builds the same Python runtime");
    await sleep(500);
    if (await exists(marker)) return;
  }
  try {
    if (await exists(marker)) return;
    await rm(folder, { recursive: true, force: true });
    await build(folder, lockFile, python, progress);
    await writeFile(marker, `${python.version}\n`);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  } finally {
    await rm(guard, { recursive: true, force: true });
  }
}

/** Takes the right to build; a builder that died leaves its process id, which nobody has any more. */
async function claim(guard: string): Promise<boolean> {
  try {
    await mkdir(guard);
    await writeFile(join(guard, "pid"), String(process.pid));
    return true;
  } catch {
    const pid = Number(await readFile(join(guard, "pid"), "utf8").catch(() => "0"));
    if (pid > 0 && !(await exists(`/proc/${pid}`))) await rm(guard, { recursive: true, force: true });
    return false;
  }
}

async function build(folder: string, lockFile: string, python: PythonInterpreter, progress: Progress): Promise<void> {
  progress(`building the Python ${python.version} runtime from ${lockFile} (once; kept in the cache)`);
  const uv = await findUv();
  if (uv !== null) {
    await must(uv, ["venv", "--quiet", "--python", python.executable, folder]);
    // Bytecode is compiled now: a candidate sees the runtime read-only and would compile every import anew.
    await must(uv, ["pip", "install", "--quiet", "--require-hashes", "--compile-bytecode", "--python", join(folder, "bin/python"), "-r", lockFile]);
    return;
  }
  await must(python.executable, ["-m", "venv", folder], "Install the venv module, for example `apt-get install python3-venv`, or uv.");
  await must(join(folder, "bin/python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", lockFile]);
}

async function findUv(): Promise<string | null> {
  for (const candidate of [process.env.TRIALIST_UV, "uv"]) {
    if (candidate === undefined) continue;
    const found = await execa(candidate, ["--version"], { reject: false, timeout: 20_000 });
    if (!found.failed) return candidate;
  }
  return null;
}

async function must(command: string, args: readonly string[], todo = "Check the network to the package index, then try again."): Promise<void> {
  const result = await execa(command, args, { reject: false, all: true, stdin: "ignore" });
  if (!result.failed) return;
  throw new RuntimeBuildError({ expected: `${command} ${args.slice(0, 3).join(" ")} … to succeed`, found: `exit code ${result.exitCode}: ${(result.all ?? "").slice(-2000)}`, todo });
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
