import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { digestOfValue } from "../../core/protocol/canonical.js";
import type { PacketData } from "../../core/protocol/packet.js";
import type { Cache } from "./cache.js";
import { canaryName } from "./canary.js";
import { type FileRecord, recordFolder } from "./file-digest.js";
import type { FrozenEnvironment } from "./freeze.js";
import { type Inventory, inventoryFile } from "./inventory.js";

/** The text that a frozen environment's digest is of, and what it says. Checked when it was opened. */
export async function frozenInventory(cache: Cache, frozen: FrozenEnvironment): Promise<{ text: string; inventory: Inventory }> {
  const text = await readFile(join(cache.folder("environments", frozen.digest), inventoryFile), "utf8");
  return { text, inventory: JSON.parse(text) as Inventory };
}

/** A folder of data as a packet names it: without the canary, which differs from machine to machine. */
export async function describeData(folder: string): Promise<{ files: readonly FileRecord[]; described: Omit<PacketData, "included"> }> {
  const files = (await recordFolder(folder)).files.filter((file) => file.path !== canaryName);
  return { files, described: describeFiles(files) };
}

/** The same of files that are recorded already. */
export function describeFiles(given: readonly FileRecord[]): Omit<PacketData, "included"> {
  const files = given.map(({ path, bytes, digest }) => ({ path, bytes, digest }));
  return { digest: digestOfValue(files), files: files.length, bytes: files.reduce((sum, file) => sum + file.bytes, 0) };
}
