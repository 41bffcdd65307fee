import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { type SurroundingsRecord, surroundingsNow } from "../adapters/environments/surroundings.js";
import type { Host } from "./environments.js";

/** Beside the ledger: what the run's surroundings were when its first owner took it, or when a person last accepted them. */
const recordFile = "surroundings.json";

/**
 * What a run's mounts and prefix have to be. `accept`: as they are now, because a person said so; else as they were when
 * the run began.
 */
export async function expectedSurroundings(
  host: Host,
  runFolder: string,
  frozen: FrozenEnvironment,
  accept: boolean,
): Promise<SurroundingsRecord> {
  const { mounts, runtime } = frozen.environment;
  if (mounts.length === 0 && runtime?.kind !== "prefix") return { mounts: [], prefix: null };
  const path = join(runFolder, recordFile);
  const known = accept ? null : await readFile(path, "utf8").catch(() => null);
  if (known !== null) return JSON.parse(known) as SurroundingsRecord;
  const now = await surroundingsNow(frozen.environment, host.cache);
  const record = accept ? now : { ...now, mounts: frozen.mounts };
  await writeFile(path, `${JSON.stringify(record)}\n`);
  return record;
}
