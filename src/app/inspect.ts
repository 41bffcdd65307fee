import { isOwned, readOwnerInfo } from "../adapters/ledger/owner.js";
import { foldVersion, replay } from "../core/harness/evolve.js";
import { initialState, type RunState } from "../core/harness/state.js";
import { organizationNamed } from "../core/organizations/registry.js";
import type { Ledger } from "../core/ports/ledger.js";
import { ledgerAt } from "./ledgers.js";
import type { Project } from "./project.js";

export interface InspectedRun {
  readonly name: string;
  readonly folder: string;
  readonly state: RunState;
  readonly ledger: Ledger;
  /** Whether a process works on it now, and which. */
  readonly owner: { readonly pid: number | null } | null;
  close(): void;
}

/** Reads a run as it stands, beside its owner if it has one. */
export function inspectRun(project: Project, name: string): InspectedRun {
  const folder = project.existingRun(name);
  const ledger = ledgerAt(project, folder, "read");
  const checkpoint = ledger.loadCheckpoint(foldVersion);
  const state = checkpoint === null ? initialState() : (JSON.parse(checkpoint.state) as RunState);
  replay(state, ledger.read(state.version));
  const owner = isOwned(folder) ? { pid: readOwnerInfo(folder)?.pid ?? null } : null;
  return { name, folder, state, ledger, owner, close: () => ledger.close() };
}

/** Whether a run's trials come from outside alone: nothing happens in it unless somebody serves it. */
export function comesFromOutside({ configuration, phase }: RunState): boolean {
  if (configuration === null || phase === "finishing") return false;
  return organizationNamed(configuration.organization.name).isServed(configuration.organization.configuration);
}
