import { lstatSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { identify, isAlive, isOfThisBoot } from "../process-identity.js";

/** Whose a runtime folder is. A process number means something within one boot and one namespace of processes. */
const owner = z.strictObject({
  process: z.strictObject({ bootId: z.string(), pid: z.number().int().positive(), startTicks: z.number() }),
  namespace: z.string(),
});

function ownerFile(folder: string): string {
  return join(folder, "own", "owner.json");
}

function processNamespace(): string {
  return readlinkSync("/proc/self/ns/pid");
}

export function claimFolder(folder: string): void {
  writeFileSync(ownerFile(folder), JSON.stringify({ process: identify(process.pid), namespace: processNamespace() }), { mode: 0o600 });
}

/**
 * Removes the runtime folders of supervisors that were killed and whose run nobody went on with. The folder around them
 * is often open to everybody: only what belongs to our user and says of a process that it is gone is touched.
 */
export function removeAbandonedFolders(beside: string): void {
  const parent = dirname(beside);
  for (const name of readdirSync(parent)) {
    if (name.startsWith("trialist-") && isAbandoned(join(parent, name))) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

function isAbandoned(folder: string): boolean {
  try {
    const entry = lstatSync(folder);
    if (!entry.isDirectory() || entry.uid !== process.getuid?.()) return false;
    const { process: found, namespace } = owner.parse(JSON.parse(readFileSync(ownerFile(folder), "utf8")));
    // In another container a process of this boot may live that we cannot see.
    const mayLiveUnseen = isOfThisBoot(found) && namespace !== processNamespace();
    return !mayLiveUnseen && !isAlive(found);
  } catch {
    // Something else of this name, one that is just being made, or one that goes away.
    return false;
  }
}
