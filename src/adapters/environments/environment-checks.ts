import type { Checks } from "./checks.js";
import { checkCandidates, checkEditable, checkIntruders, checkNamesOfFiles, checkSize, checkWritable } from "./file-checks.js";
import { checkGates, checkMetrics, checkPromotion } from "./metric-checks.js";
import { checkFolders, checkLocks, checkNamedFiles, checkScripts } from "./named-file-checks.js";
import { checkParameters } from "./parameter-checks.js";
import { checkStages } from "./stage-checks.js";

/** Everything about an environment that only its files, or two places of the contract together, can show. */
export async function checkEnvironment(checks: Checks): Promise<void> {
  checkNamesOfFiles(checks);
  checkIntruders(checks);
  checkSize(checks);
  checkEditable(checks);
  checkWritable(checks);
  checkCandidates(checks);
  checkNamedFiles(checks);
  checkScripts(checks);
  checkStages(checks);
  checkMetrics(checks);
  checkGates(checks);
  checkPromotion(checks);
  await checkParameters(checks);
  await checkLocks(checks);
  await checkFolders(checks);
}
