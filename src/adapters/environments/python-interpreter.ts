import { execa } from "execa";
import { existsSync } from "node:fs";
import { TrialistError } from "../../core/protocol/errors.js";

/** No interpreter on this machine can carry the runtime. */
export class NoPythonError extends TrialistError {
  readonly kind = "infrastructure";
}

export interface PythonInterpreter {
  readonly executable: string;
  /** `3.11.7` */
  readonly version: string;
  /** Where its standard library lies; bound into the sandbox when it is not below /usr. */
  readonly prefix: string;
}

const probe = "import os, sys; print(os.path.realpath(sys.executable)); print('.'.join(map(str, sys.version_info[:3]))); print(os.path.realpath(sys.base_prefix))";

/** Names by which interpreters are looked for, the system's own first: it is below /usr, which every sandbox sees. */
function candidates(): string[] {
  const minors = [14, 13, 12, 11, 10, 9];
  return ["/usr/bin/python3", ...minors.map((minor) => `/usr/bin/python3.${minor}`), "/usr/local/bin/python3", "python3", ...minors.map((minor) => `python3.${minor}`)];
}

/** The first interpreter that satisfies `requires`, such as ">=3.11,<3.14". @throws NoPythonError */
export async function findPython(requires: string): Promise<PythonInterpreter> {
  const seen: string[] = [];
  for (const name of candidates()) {
    if (name.startsWith("/") && !existsSync(name)) continue;
    const found = await execa(name, ["-I", "-c", probe], { reject: false, timeout: 20_000 });
    const [executable, version, prefix] = found.stdout?.split("\n") ?? [];
    if (found.failed || executable === undefined || version === undefined || prefix === undefined) continue;
    seen.push(`${executable} ${version}`);
    if (satisfies(version, requires) && reachable(prefix)) return { executable, version, prefix };
  }
  throw new NoPythonError({
    expected: `a Python ${requires} that a sandboxed process can reach`,
    found: seen.length === 0 ? "no python3 at all" : [...new Set(seen)].join(", "),
    todo: "Install one through the system's package manager, for example `apt-get install python3 python3-venv`.",
  });
}

/** Under root, stages run as an unprivileged user, to whom root's home is closed. */
function reachable(prefix: string): boolean {
  return process.getuid?.() !== 0 || !prefix.startsWith("/root/");
}

/** Whether a version satisfies a comma-separated list of comparisons. */
export function satisfies(version: string, requires: string): boolean {
  return requires.split(",").every((clause) => {
    const match = /^\s*(>=|<=|==|~=|!=|>|<)\s*(\d+(?:\.\d+)*)(\.\*)?\s*$/.exec(clause);
    if (match === null) return clause.trim() === "";
    const [, operator, wanted = ""] = match;
    const order = compareVersions(version, wanted);
    const prefixed = `${version}.`.startsWith(`${wanted}.`);
    switch (operator) {
      case ">=":
        return order >= 0;
      case "<=":
        return order <= 0 || prefixed;
      case ">":
        return order > 0 && !prefixed;
      case "<":
        return order < 0;
      case "!=":
        return !prefixed;
      case "~=":
        return order >= 0 && `${version}.`.startsWith(`${wanted.split(".").slice(0, -1).join(".")}.`);
      default:
        return prefixed;
    }
  });
}

function compareVersions(a: string, b: string): number {
  const [left, right] = [a.split(".").map(Number), b.split(".").map(Number)];
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
