import { existsSync, readFileSync, realpathSync } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Mount } from "../../core/ports/executor.js";
import type { PreparedEnvironment } from "../../core/ports/prepared-environment.js";
import { digestOf, digestOfValue } from "../../core/protocol/canonical.js";
import type { Environment } from "../../core/protocol/environment.js";
import { withLock } from "./build-lock.js";
import type { Cache } from "./cache.js";
import { hiddenSystemPackages } from "./hidden-packages.js";
import { lockFaults, namesPackages } from "./lock-file.js";
import { buildVirtualEnvironment, type Packages, RuntimeBuildError, type WantedPackages } from "./python-installer.js";
import { findPython, isSystem, type PythonInterpreter } from "./python-interpreter.js";

export type Runtime = PreparedEnvironment["runtime"];
/** Hears what long work is being done. */
export type Progress = (line: string) => void;

/** The system's interpreters: nothing to build. */
export const systemRuntime: Runtime = { path: [], mounts: [], environment: {} };

/**
 * Binds an existing prefix (venv, conda, Node) read-only at its own path. Nothing freezes it. A venv brings the
 * installation that it was made from.
 */
export function prefixRuntime(prefix: string): Runtime {
  const folders = [prefix];
  const configuration = join(prefix, "pyvenv.cfg");
  const home = existsSync(configuration) ? /^home\s*=\s*(.+)$/m.exec(readFileSync(configuration, "utf8"))?.[1]?.trim() : undefined;
  const interpreter = join(prefix, "bin", "python");
  if (home !== undefined && existsSync(interpreter)) folders.push(dirname(home), dirname(dirname(realpathSync(interpreter))));
  const outside = [...new Set(folders)].filter((folder) => !/^\/usr(\/|$)|^\/$/.test(folder));
  return { path: [join(prefix, "bin")], mounts: outside.map(readOnly), environment: home === undefined ? {} : { VIRTUAL_ENV: prefix } };
}

function readOnly(folder: string): Mount {
  return { source: folder, target: folder, mode: "read-only" };
}

/**
 * A virtual environment with exactly what a hashed lock file names, built once and kept by digest of the lock, the
 * interpreter and the platform. It is built where it will lie, as it cannot be moved; its marker is written last. Two
 * builders at once: the second waits for the first.
 */
export async function pythonRuntime(
  lockFile: string,
  requires: string,
  cache: Cache,
  progress: Progress,
  packages: Packages = "any",
): Promise<Runtime> {
  const { python, lock, name } = await pythonBuild(lockFile, requires);
  const [fault] = lockFaults(lock);
  if (fault !== undefined)
    throw new RuntimeBuildError({ expected: fault.expected, found: fault.found, where: `${lockFile}:${fault.line}`, todo: fault.todo });
  const folder = cache.folder("runtimes", name);
  if (!(await isComplete(folder))) {
    const onWait = (): void => progress("waiting for another process that builds the same Python runtime");
    await withLock(`${folder}.lock`, onWait, () =>
      build(folder, { lockFile: namesPackages(lock) ? lockFile : null, python, packages }, progress),
    );
  }
  cache.markUsed(folder);
  return {
    path: [join(folder, "bin")],
    mounts: [...[folder, ...(isSystem(python) ? [] : [python.prefix])].map(readOnly), ...hiddenSystemPackages(cache)],
    environment: { VIRTUAL_ENV: folder },
  };
}

async function pythonBuild(lockFile: string, requires: string): Promise<{ python: PythonInterpreter; lock: string; name: string }> {
  const python = await findPython(requires);
  const lock = await readFile(lockFile, "utf8");
  return { python, lock, name: digestOfValue({ form: 1, lock: digestOf(lock), ...python }).slice(0, 40) };
}

/** What tells one runtime from another on this machine, but for what is inside of a prefix: see `surroundings.ts`. */
export async function runtimeIdentity(runtime: Environment["runtime"], packFolder: string): Promise<string> {
  if (runtime === null) return "system";
  if (runtime.kind === "prefix") return `prefix ${runtime.use}`;
  return `python ${(await pythonBuild(join(packFolder, runtime.lock), runtime.requires)).name}`;
}

async function build(folder: string, wanted: WantedPackages, progress: Progress): Promise<void> {
  if (await isComplete(folder)) return;
  await rm(folder, { recursive: true, force: true });
  const { lockFile, python } = wanted;
  progress(`building the Python ${python.version} runtime${lockFile === null ? "" : ` from ${lockFile}`} (once; kept in the cache)`);
  try {
    await buildVirtualEnvironment(folder, wanted);
    await writeFile(join(folder, ".complete"), `${python.version}\n`);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function isComplete(folder: string): Promise<boolean> {
  return stat(join(folder, ".complete")).then(
    () => true,
    () => false,
  );
}
