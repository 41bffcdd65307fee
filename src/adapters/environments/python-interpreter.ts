import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { TrialistError } from "../../core/protocol/errors.js";
import { assertReachable } from "../sandbox/identity.js";
import { satisfies } from "./python-versions.js";

/** No interpreter on this machine can carry the runtime. */
export class NoPythonError extends TrialistError {
  readonly kind = "infrastructure";
}

export interface PythonInterpreter {
  /** The real file, with every link and shim resolved. */
  readonly executable: string;
  /** `3.11.7` */
  readonly version: string;
  /** Where its standard library lies; bound into the sandbox when it is not below /usr. */
  readonly prefix: string;
  /** `cpython-311`, `linux-x86_64`: what compiled packages must fit. */
  readonly implementation: string;
  readonly platform: string;
}

const probe = `
import json, os, sys, sysconfig
print(json.dumps({
  "executable": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
  "version": ".".join(map(str, sys.version_info[:3])),
  "prefix": os.path.realpath(sys.base_prefix),
  "implementation": sys.implementation.cache_tag or sys.implementation.name,
  "platform": sysconfig.get_platform(),
}))`;

/** Interpreters whose shared library and standard library stay where they are; a copied one would run another's. */
export async function findPython(requires: string): Promise<PythonInterpreter> {
  const rejected = new Map<string, string>();
  const usable: PythonInterpreter[] = [];
  const named = process.env["TRIALIST_PYTHON"];
  for (const command of named ? [named] : candidates()) {
    const python = await inspect(command);
    if (python === null) continue;
    const reason = reasonAgainst(python, requires);
    if (reason !== null) rejected.set(python.executable, reason);
    else if (isSystem(python)) return python;
    else usable.push(python);
  }
  const [first] = usable;
  if (first !== undefined) return first;
  throw noPython(requires, rejected);
}

/** Whether every sandbox sees it without a mount of its own. */
export function isSystem(python: PythonInterpreter): boolean {
  return python.prefix === "/usr" || python.prefix.startsWith("/usr/");
}

/** Names by which interpreters are looked for: the system's own first, then what the user has on the PATH or in pyenv. */
function candidates(): string[] {
  const versions = [14, 13, 12, 11, 10, 9].map((minor) => `python3.${minor}`);
  const system = ["/usr/bin", "/usr/local/bin"].flatMap((folder) => ["python3", ...versions].map((name) => join(folder, name)));
  const pyenv = join(process.env["PYENV_ROOT"] ?? join(homedir(), ".pyenv"), "versions");
  const managed = existsSync(pyenv) ? readdirSync(pyenv).map((name) => join(pyenv, name, "bin", "python3")) : [];
  return [...system.filter((path) => existsSync(path)), "python3", ...versions, ...managed.filter((path) => existsSync(path))];
}

async function inspect(command: string): Promise<PythonInterpreter | null> {
  const found = await execa(command, ["-I", "-c", probe], { reject: false, timeout: 20_000, stdin: "ignore" });
  if (found.failed) return null;
  try {
    return JSON.parse(found.stdout) as PythonInterpreter;
  } catch {
    return null;
  }
}

function reasonAgainst(python: PythonInterpreter, requires: string): string | null {
  if (!satisfies(python.version, requires)) return `is ${python.version}`;
  if (isSystem(python)) return null;
  try {
    assertReachable([python.executable, join(python.prefix, "lib")]);
    return null;
  } catch (error) {
    const found = error instanceof TrialistError ? error.facts.found : String(error);
    return `is ${python.version}, but out of reach for the sandbox's user: ${found}`;
  }
}

function noPython(requires: string, rejected: ReadonlyMap<string, string>): NoPythonError {
  const found = [...rejected].map(([executable, reason]) => `${executable} ${reason}`).join("; ");
  return new NoPythonError({
    expected: `a Python ${requires} that a sandboxed process can reach`,
    found: found === "" ? "no python3 at all" : found,
    todo: "Install one through the system's package manager, for example `apt-get install python3 python3-venv`, or name one outside of private home folders in TRIALIST_PYTHON.",
  });
}
