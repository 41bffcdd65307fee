// What every step of the set-up shares: how it speaks, how it fails, how it starts a program, where it leaves its stamps.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A step cannot be done. The message says what is wrong, the remedy what the person at the keyboard can do about it. */
export class SetUpError extends Error {
  name = "SetUpError";

  constructor(message, remedy) {
    super(message);
    this.remedy = remedy;
  }
}

/** One line per step; on standard error, so that a program's own output stays clean. */
export function say(step, what) {
  process.stderr.write(`set-up · ${step}: ${what}\n`);
}

/** Runs a program to its end. `quiet` keeps its output for the error; otherwise the person sees it on standard error. */
export function run(command, args, { cwd = root, quiet = false, environment = {}, timeoutSeconds = 0 } = {}) {
  const result = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...environment },
    stdio: quiet ? ["ignore", "pipe", "pipe"] : ["ignore", 2, 2],
    encoding: "utf8",
    timeout: timeoutSeconds * 1000,
    maxBuffer: 64 * 1024 * 1024,
  });
  return {
    ok: result.status === 0,
    output: [result.stdout, result.stderr, result.error?.message].filter(Boolean).join("\n").trim(),
    standardOutput: (result.stdout ?? "").trim(),
  };
}

/** npm as a command line. npm tells its scripts where it is; another package manager that started us does not count. */
export function npm(...args) {
  const program = process.env.npm_execpath;
  return program !== undefined && basename(program).startsWith("npm") ? [process.execPath, program, ...args] : ["npm", ...args];
}

/** Stamps live inside node_modules: they are about what was done with it, and they go when it goes. */
const stampFile = (name) => join(root, "node_modules", ".cache", "trialist", name);

export function stamp(name) {
  try {
    return readFileSync(stampFile(name), "utf8");
  } catch {
    return null;
  }
}

export function writeStamp(name, value) {
  mkdirSync(dirname(stampFile(name)), { recursive: true });
  writeFileSync(stampFile(name), value);
}

/** Runs `main` when the module is the program that node was started with, and turns a SetUpError into words and exit code 1. */
export function runAsMain(moduleUrl, main) {
  const started = process.argv[1];
  if (started === undefined || realpathSync(started) !== fileURLToPath(moduleUrl)) return;
  exitOnSetUpError(main);
}

export function exitOnSetUpError(main) {
  try {
    main();
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error;
    process.stderr.write(`\nset-up stopped: ${error.message}\n\nWhat to do: ${error.remedy}\n`);
    process.exit(1);
  }
}
