import { existsSync } from "node:fs";
import { sealedPath } from "../adapters/ledger/run-files.js";
import { RefusedError } from "../core/protocol/errors.js";

/**
 * Whether anybody has looked at held-out data for this run, or begun to. The sealed file is made by the first look; here it is not
 * opened, so that nothing of what was seen can reach a search that goes on.
 */
export function wasLookedAt(runFolder: string): boolean {
  return existsSync(sealedPath(runFolder));
}

/**
 * Why a search goes on after a look: what is found from now on was chosen by somebody who may know the held-out score.
 * Null where nobody has looked.
 * @throws RefusedError without a reason
 */
export function reasonAfterLook(runFolder: string, name: string, reason: string | null): string | null {
  if (!wasLookedAt(runFolder)) return null;
  if (reason !== null) return reason;
  throw new RefusedError({
    expected: "a run whose held-out data nobody has looked at",
    found: `that \`trialist heldout ${name}\` has looked, or begun to`,
    where: runFolder,
    todo: "A search that goes on now was steered by that look. Start a new run, or say why with --after-heldout-look REASON: status and report then say so.",
  });
}
