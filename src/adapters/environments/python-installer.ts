import { rm } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { TrialistError } from "../../core/protocol/errors.js";
import type { PythonInterpreter } from "./python-interpreter.js";
import { refuseBuilds } from "./wheel-lock.js";

/** A runtime could not be built. */
export class RuntimeBuildError extends TrialistError {
  readonly kind = "infrastructure";
}

/** `wheels`: nothing is built, since building a package runs its code outside of every sandbox. */
export type Packages = "any" | "wheels";

export interface WantedPackages {
  /** Null: none. */
  readonly lockFile: string | null;
  readonly python: PythonInterpreter;
  readonly packages: Packages;
}

/** Installs a lock's packages into a virtual environment that has no installer of its own. */
interface Installer {
  readonly name: string;
  readonly command: readonly string[];
  /** Whether it also compiles bytecode. */
  readonly compiles: boolean;
}

/**
 * Makes a virtual environment with exactly what a lock names. It has no pip: what installs stands outside, so that the
 * same lock gives the same runtime on every machine. Bytecode is compiled now, as candidates see it read-only.
 */
export async function buildVirtualEnvironment(folder: string, { lockFile, python, packages }: WantedPackages): Promise<void> {
  if (packages === "wheels" && lockFile !== null) await refuseBuilds(lockFile);
  await must(
    [python.executable, "-m", "venv", "--without-pip", folder],
    "Install the venv module, for example `apt-get install python3-venv`.",
  );
  if (lockFile === null) return;
  const target = join(folder, "bin", "python");
  const workshop = `${folder}.installer`;
  try {
    const found = await installers(target, python, workshop);
    await install(lockFile, found, packages === "wheels" ? ["--only-binary", ":all:"] : [], { target, folder });
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

async function install(
  lockFile: string,
  found: readonly Installer[],
  options: readonly string[],
  { target, folder }: { readonly target: string; readonly folder: string },
): Promise<void> {
  const failures: string[] = [];
  for (const installer of found) {
    const failure = await attempt([...installer.command, ...options, "--require-hashes", "-r", lockFile]);
    if (failure === null) {
      if (!installer.compiles) await compile(target, folder);
      return;
    }
    failures.push(`${installer.name}: ${failure}`);
  }
  if (failures.length === 0) {
    throw new RuntimeBuildError({
      expected: "uv, or pip with Python's venv module",
      found: "neither",
      where: lockFile,
      todo: "Run `apt-get install python3-venv`, or `pip install uv`.",
    });
  }
  throw new RuntimeBuildError({
    expected: "the packages of the lock to be installed",
    found: failures.join("\n"),
    where: lockFile,
    todo: "Check the network to the package index, and that the lock fits this Python and platform.",
  });
}

/** uv first, since it is ten times as fast; then pip, which may know an index that uv is not told of. */
async function installers(target: string, python: PythonInterpreter, workshop: string): Promise<Installer[]> {
  const found: Installer[] = [];
  const uv = await findUv();
  if (uv !== null) {
    const options = ["--quiet", "--link-mode", "copy", "--compile-bytecode", "--python", target];
    found.push({ name: "uv", command: [...uv, "pip", "install", ...options], compiles: true });
  }
  const pip = await findPip(python, workshop);
  if (pip !== null) {
    const options = ["install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-compile", "--no-deps"];
    found.push({ name: "pip", command: [...pip, "--python", target, ...options], compiles: false });
  }
  return found;
}

async function findUv(): Promise<string[] | null> {
  const named = process.env["TRIALIST_UV"];
  const choices = [...(named ? [[named]] : []), ["uv"], ["python3", "-m", "uv"]];
  for (const choice of choices) if ((await attempt([...choice, "--version"], 20_000)) === null) return choice;
  return null;
}

/** A pip that can install for another interpreter (22.3 or newer): the interpreter's own, or one made in a workshop. */
async function findPip(python: PythonInterpreter, workshop: string): Promise<string[] | null> {
  const knowsPython = async (pip: string[]): Promise<boolean> =>
    (await attempt([...pip, "--python", python.executable, "--version"], 60_000)) === null;
  const own = [python.executable, "-m", "pip"];
  if (await knowsPython(own)) return own;
  const makers = [
    [python.executable, "-m", "venv", workshop],
    ["virtualenv", "--quiet", "--python", python.executable, workshop],
  ];
  for (const maker of makers) {
    await rm(workshop, { recursive: true, force: true });
    const made = [join(workshop, "bin", "python"), "-m", "pip"];
    if ((await attempt(maker)) === null && (await knowsPython(made))) return made;
  }
  return null;
}

/** Packages bring tests with syntax of other Python versions; that they do not compile is no failure. */
async function compile(target: string, folder: string): Promise<void> {
  await attempt([target, "-m", "compileall", "-q", "-j", "0", join(folder, "lib")]);
}

async function must(command: readonly string[], todo: string): Promise<void> {
  const failure = await attempt(command);
  if (failure !== null) throw new RuntimeBuildError({ expected: `${command.slice(0, 3).join(" ")} to succeed`, found: failure, todo });
}

/** Runs a command; null when it succeeded, else why not. Everything it makes may be read by every user. */
async function attempt(command: readonly string[], timeout = 1_800_000): Promise<string | null> {
  const result = await execa("/bin/sh", ["-c", 'umask 022; exec "$@"', "sh", ...command], {
    reject: false,
    all: true,
    stdin: "ignore",
    timeout,
    extendEnv: false,
    env: installerEnvironment(),
  });
  if (!result.failed) return null;
  const reason = result.timedOut ? `no end within ${timeout / 1000} s` : `exit code ${result.exitCode ?? result.signal ?? "unknown"}`;
  return `${reason}: ${withoutCredentials((result.all ?? "").slice(-2000))}`;
}

/** The user's own settings for registries and proxies, without what would point the tools at another environment. */
function installerEnvironment(): Record<string, string> {
  const misleading =
    /^(VIRTUAL_ENV|CONDA_|PYTHONPATH$|PYTHONHOME$|PIP_(TARGET|PREFIX|USER|REQUIRE_VIRTUALENV)$|UV_(PROJECT|PYTHON|SYSTEM|TARGET|PREFIX))/;
  return Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined && !misleading.test(entry[0])),
  );
}

function withoutCredentials(text: string): string {
  return text.replaceAll(/(\w+:\/\/)[^\s/@]+@/g, "$1***@");
}
