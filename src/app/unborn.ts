import { rm } from "node:fs/promises";
import { LedgerSchemaError } from "../core/ports/ledger-errors.js";
import { inspectRun } from "./inspect.js";
import { ledgerAt } from "./ledgers.js";
import type { Project } from "./project.js";

/**
 * Removes a run of which nothing but a folder came about, since its process died before the start was recorded; says
 * whether there was one.
 * @throws RunOwnedError when a process is just making it
 */
export async function removeUnborn(project: Project, name: string): Promise<boolean> {
  if (!isSuspect(project, name)) return false;
  const folder = project.existingRun(name);
  // The lock first: whoever has it may be about to record the start.
  const ledger = ledgerAt(project, folder, "own");
  const isEmpty = ledger.head === 0;
  if (isEmpty) await rm(folder, { recursive: true, force: true });
  ledger.close();
  return isEmpty;
}

function isSuspect(project: Project, name: string): boolean {
  try {
    const { state, close } = inspectRun(project, name);
    close();
    return state.phase === "new";
  } catch (error) {
    if (error instanceof LedgerSchemaError) return true;
    throw error;
  }
}
