import { commandResearcher } from "../adapters/researchers/command.js";
import type { Executor } from "../core/ports/executor.js";
import type { PreparedEnvironment } from "../core/ports/prepared-environment.js";
import type { Researcher } from "../core/ports/researcher.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { RunConfiguration } from "../core/protocol/run.js";

/** What a researcher is made of. */
interface Parts {
  readonly executor: Executor;
  readonly prepared: PreparedEnvironment;
  readonly configuration: RunConfiguration;
  /** What command researchers see of the pack. */
  readonly folder: string;
}

const customPrefix = "command:";

/** The researchers that a run's configuration names. */
export function researchersOf(parts: Parts): Map<string, Researcher> {
  const names = new Set(Object.values(parts.configuration.researchers));
  return new Map([...names].map((name) => [name, researcherNamed(name, parts)]));
}

/** `command:LINE` runs that line in the frozen pack; any other name is one of the pack's playbooks. */
function researcherNamed(name: string, parts: Parts): Researcher {
  const { environment, runtime } = parts.prepared;
  assertResearcher(name, environment.playbook);
  const command = name.startsWith(customPrefix) ? name.slice(customPrefix.length) : (environment.playbook[name] ?? "");
  return commandResearcher({
    name,
    command,
    folder: parts.folder,
    executor: parts.executor,
    sandbox: parts.configuration.sandbox,
    path: runtime.path,
    mounts: runtime.mounts,
    wallMs: parts.configuration.limits.callWallMs,
  });
}

/** @throws RefusedError for a researcher that this environment has not */
export function assertResearcher(name: string, playbook: Readonly<Record<string, string>>): void {
  if (name.startsWith(customPrefix) && name.length > customPrefix.length) return;
  if (Object.hasOwn(playbook, name)) return;
  const known = Object.keys(playbook);
  throw new RefusedError({
    expected:
      known.length === 0
        ? "a researcher as command:LINE, since this environment has no playbook"
        : `a researcher: ${known.join(", ")}, or command:LINE`,
    found: JSON.stringify(name),
    todo: "A command reads one JSON document on standard input and writes one on standard output; `trialist run --help` shows an example.",
  });
}
