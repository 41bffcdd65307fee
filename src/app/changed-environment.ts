import { existsSync } from "node:fs";
import { digestEnvironment } from "../adapters/environments/freeze.js";
import { loadEnvironment } from "../adapters/environments/load.js";
import { changedMounts } from "../adapters/environments/surroundings.js";
import { configurationOf, type RunState } from "../core/harness/state.js";
import { RefusedError } from "../core/protocol/errors.js";
import { frozenByDigest, type Host } from "./environments.js";
import { readOrigin } from "./run-origin.js";

/**
 * Refuses to go on measuring under an environment whose files changed since the run was started.
 * `anyway`: the command that goes on with the frozen copy.
 * @throws RefusedError
 */
export async function refuseChangedEnvironment(host: Host, folder: string, state: RunState, anyway: string): Promise<void> {
  const origin = await readOrigin(folder);
  // A folder that went away changes nothing; one that is there and cannot be read as it was, does.
  if (origin === null || !existsSync(origin.environmentFolder)) return;
  const loaded = await loadEnvironment(origin.environmentFolder).catch(() => null);
  const digest = loaded === null ? null : await digestEnvironment(loaded, host.cache);
  const { environmentDigest, run } = configurationOf(state);
  if (digest === environmentDigest) return;
  if (loaded !== null) await refuseChangedMounts(host, state, anyway);
  throw new RefusedError({
    expected: `the environment that ${run} was started with`,
    found: loaded === null ? "files that are no environment any more" : "other files",
    where: origin.environmentFolder,
    todo: `Start a new run to measure under the changed environment, or \`${anyway}\` to go on with the frozen copy.`,
  });
}

/** A mount that changed is named by itself: the environment's own files may be what they were. */
async function refuseChangedMounts(host: Host, state: RunState, anyway: string): Promise<void> {
  const { environment, environmentDigest, run } = configurationOf(state);
  const frozen = await frozenByDigest(host, environmentDigest).catch(() => null);
  const changed = frozen === null ? [] : await changedMounts(environment, frozen.mounts, host.cache);
  if (changed.length === 0) return;
  throw new RefusedError({
    expected: `the mounts that ${run} was started with`,
    found: `other files in ${changed.join(", ")}`,
    todo: `Bring them back as they were; or start a new run; or \`${anyway}\` to go on with them as they are now.`,
  });
}
