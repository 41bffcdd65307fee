import { openSqliteLedger } from "../adapters/ledger/sqlite-ledger.js";
import type { Ledger } from "../core/ports/ledger.js";
import type { Project } from "./project.js";

/** `create` makes one; `own` takes one that is there, to write to it; `read` looks on beside its owner. */
type Mode = "create" | "own" | "read";

/** The ledger that lies in a folder. Every use case that reads events or appends some opens it here. @throws the errors of the ledger's port */
export function ledgerAt(project: Project, folder: string, mode: Mode): Ledger {
  return openSqliteLedger(folder, { mode, blobFolder: project.blobFolder });
}

/** The ledger of a run of this project. @throws RefusedError for a name that no run has, and the errors of the ledger's port */
export function openRun(project: Project, name: string, mode: Exclude<Mode, "create">): Ledger {
  return ledgerAt(project, project.existingRun(name), mode);
}
