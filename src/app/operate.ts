import { askOwner } from "../adapters/ledger/owner-socket.js";
import { isRunning } from "../core/harness/due.js";
import { configurationOf } from "../core/harness/state.js";
import type { OperatorCommand } from "../core/protocol/commands.js";
import { RefusedError } from "../core/protocol/errors.js";
import { Run } from "../research/runner/run.js";
import { HookDelivery } from "./hook-delivery.js";
import { inspectRun } from "./inspect.js";
import { ledgerAt } from "./ledgers.js";
import { loadModelConfiguration } from "./model-configuration.js";
import { type CandidateMessage, longestMessage, type Performed, perform } from "./perform.js";
import type { Project } from "./project.js";

/** What became of an operator's command. */
export interface Operated extends Performed {
  /** The owner carried it out, or this process did since nobody owns the run. */
  readonly by: "owner" | "this process";
}

/**
 * Brings a person's command to a run: through its owner's socket, or directly when nobody owns it.
 * @throws RefusedError when the run does not allow it
 */
export async function operate(project: Project, name: string, command: OperatorCommand | CandidateMessage): Promise<Operated> {
  const folder = project.existingRun(name);
  const answer = await askOwner(folder, command, command.type === "add_candidate" ? { maxLength: longestMessageTo(project, name) } : {});
  if (answer !== null) return { by: "owner", ...(answer.result as Performed) };
  const ledger = ledgerAt(project, folder, "own");
  try {
    const run = Run.open(ledger, Date.now);
    // The time since the last owner's last sign of life is nobody's active time.
    if (isRunning(run.state))
      run.dispatch({ type: "open_span", epoch: run.state.epoch + 1, previousEndedAt: ledger.lastHeartbeat()?.at ?? null, drives: false });
    const hooks = await hooksOf(project, name, run);
    try {
      return { by: "this process", ...perform(run, command, (each) => run.dispatch(each)) };
    } finally {
      await hooks?.close(true);
    }
  } finally {
    ledger.close();
  }
}

/** Nobody else would tell them. A project's file that cannot be read keeps nobody from ending a run; its next owner tells them then. */
async function hooksOf(project: Project, name: string, run: Run): Promise<HookDelivery | null> {
  try {
    const { hooks: configured } = await loadModelConfiguration(project.folder);
    return new HookDelivery({ run, project, name, variables: process.env, configured, given: null, note: () => undefined });
  } catch (error) {
    if (error instanceof RefusedError) return null;
    throw error;
  }
}

function longestMessageTo(project: Project, name: string): number {
  const { state, close } = inspectRun(project, name);
  close();
  return longestMessage(configurationOf(state).environment.surface);
}
