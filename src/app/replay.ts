import { rm } from "node:fs/promises";
import { openMemoryLedger } from "../adapters/ledger/memory-ledger.js";
import { organizationNamed } from "../core/organizations/registry.js";
import type { Promotion } from "../core/protocol/environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import { type Redecided, redecide } from "../research/replay/redecide.js";
import { type Replayed, replayRun } from "../research/replay/replay-run.js";
import { ledgerAt, openRun } from "./ledgers.js";
import type { Project } from "./project.js";
import { reanswerer } from "./reanswer.js";
import type { Secrets } from "./secrets.js";

export interface ReplayReport extends Replayed {
  /** Chain values of both ledgers: equal when every event is the same to the byte, which an older build's cannot be. */
  readonly chain: { readonly recorded: string; readonly replayed: string };
}

/**
 * Replays a run offline from its ledger alone. `keepAs`: name of a run of this project that the replay is written to;
 * null: it is kept in memory and forgotten.
 */
export async function replayRecorded(project: Project, name: string, keepAs: string | null, secrets: Secrets): Promise<ReplayReport> {
  const source = openRun(project, name, "read");
  try {
    const folder = keepAs === null ? null : freeFolder(project, keepAs);
    const target = folder === null ? openMemoryLedger() : ledgerAt(project, folder, "create");
    try {
      const { redact } = secrets;
      const replayed = await replayRun({ source, target, redact, reanswer: reanswerer(secrets) });
      return { ...replayed, chain: { recorded: source.chain, replayed: target.chain } };
    } catch (error) {
      if (folder !== null) await rm(folder, { recursive: true, force: true });
      throw error;
    } finally {
      target.close();
    }
  } finally {
    source.close();
  }
}

export type { Redecided };

/** What of a recorded run's policy is changed; what is undefined stays as it was. */
export interface PolicyChange {
  /** `name` null: the recorded one; its configuration is kept where `configuration` says nothing. */
  readonly organization?: { readonly name: string | null; readonly configuration: Readonly<Record<string, unknown>> };
  readonly promotion?: Partial<Promotion>;
}

/** Decides a recorded run under another policy, up to the first question that is not on record. */
export function redecideRecorded(project: Project, name: string, change: PolicyChange): Redecided {
  const source = openRun(project, name, "read");
  try {
    return redecide(source, (recorded) => ({
      ...recorded,
      organization: changedOrganization(recorded.organization, change.organization),
      promotion: { ...recorded.promotion, ...change.promotion },
    }));
  } finally {
    source.close();
  }
}

function changedOrganization(
  recorded: RunConfiguration["organization"],
  change: PolicyChange["organization"],
): RunConfiguration["organization"] {
  if (change === undefined) return recorded;
  const name = change.name ?? recorded.name;
  const configuration = name === recorded.name ? { ...recorded.configuration, ...change.configuration } : change.configuration;
  return { name, configuration: organizationNamed(name).configure(configuration) as Record<string, unknown> };
}

function freeFolder(project: Project, name: string): string {
  const folder = project.runFolder(name);
  if (!project.runNames().includes(name)) return folder;
  throw new RefusedError({
    expected: "a name that no run of this project has",
    found: JSON.stringify(name),
    todo: "Choose another name for the replay.",
  });
}
