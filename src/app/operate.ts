import { askOwner } from "../adapters/ledger/owner-socket.js";
import { openSqliteLedger } from "../adapters/ledger/sqlite-ledger.js";
import { isRunning } from "../core/harness/due.js";
import type { OperatorCommand } from "../core/protocol/commands.js";
import { Run } from "../research/runner/run.js";
import type { Project } from "./project.js";

/** What became of an operator's command. */
export interface Operated {
  /** The owner carried it out, or this process did since nobody owns the run. */
  readonly by: "owner" | "this process";
  readonly phase: string;
  readonly version: number;
}

/**
 * Brings a person's command to a run: through its owner's socket, or directly when nobody owns it.
 * @throws RefusedError when the run does not allow it
 */
export async function operate(project: Project, name: string, command: OperatorCommand): Promise<Operated> {
  const folder = project.existingRun(name);
  const answer = await askOwner(folder, command);
  if (answer !== null) return { by: "owner", ...(answer.result as { phase: string; version: number }) };
  const ledger = openSqliteLedger(folder, { mode: "own", blobFolder: project.blobFolder });
  try {
    const run = Run.open(ledger, Date.now);
    // The time since the last owner's last sign of life is nobody's active time.
    if (isRunning(run.state))
      run.dispatch({ type: "open_span", epoch: run.state.epoch + 1, previousEndedAt: ledger.lastHeartbeat()?.at ?? null });
    run.dispatch(command);
    return { by: "this process", phase: run.state.phase, version: run.state.version };
  } finally {
    ledger.close();
  }
}
