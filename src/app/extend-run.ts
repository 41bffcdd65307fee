import { refuseUnfinished } from "../core/harness/decide/extend.js";
import { configurationOf } from "../core/harness/state.js";
import { Run } from "../research/runner/run.js";
import { type BudgetChange, changedBudget } from "./budget-change.js";
import { refuseChangedEnvironment } from "./changed-environment.js";
import { frozenByDigest, type Host } from "./environments.js";
import { reasonAfterLook } from "./heldout-looked.js";
import { ledgerAt } from "./ledgers.js";
import type { Project } from "./project.js";

export interface ExtendRequest extends BudgetChange {
  readonly reason: string;
  /** Go on with the frozen copy although the environment's files changed. */
  readonly frozen: boolean;
  /** Why, where somebody has looked at held-out data; null: nobody may have. */
  readonly afterHeldoutLook: string | null;
}

/**
 * Records that a finished run goes on. Nothing is measured yet: whoever owns it next searches on.
 * @throws RefusedError, RunOwnedError
 */
export async function extendRun(project: Project, host: Host, name: string, request: ExtendRequest): Promise<void> {
  const folder = project.existingRun(name);
  const ledger = ledgerAt(project, folder, "own");
  try {
    const run = Run.open(ledger, Date.now);
    refuseUnfinished(run.state);
    const afterHeldoutLook = reasonAfterLook(folder, name, request.afterHeldoutLook);
    if (!request.frozen) await refuseChangedEnvironment(host, folder, run.state, `trialist extend ${name} --frozen --reason …`);
    // A copy that is gone is found out before anything is recorded.
    await frozenByDigest(host, configurationOf(run.state).environmentDigest);
    run.dispatch({ type: "extend", ...changedBudget(run.state, request), reason: request.reason, afterHeldoutLook });
  } finally {
    ledger.close();
  }
}
