import { existsSync } from "node:fs";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { canonicalJson } from "../core/protocol/canonical.js";

/** What lies beside the ledger: where the environment was when the run started. Information, never trusted. */
interface RunOrigin {
  readonly environmentFolder: string;
}

const originFile = "origin.json";

export async function writeOrigin(runFolder: string, environmentFolder: string): Promise<void> {
  await writeFile(join(runFolder, originFile), canonicalJson({ environmentFolder: resolve(environmentFolder) } satisfies RunOrigin));
}

/** Where the environment of a run was when it started; null when nobody knows. */
export async function readOrigin(runFolder: string): Promise<RunOrigin | null> {
  const text = await readFile(join(runFolder, originFile), "utf8").catch(() => null);
  return text === null ? null : (JSON.parse(text) as RunOrigin);
}

/** For a run that begins as another did. */
export async function copyOrigin(fromRunFolder: string, toRunFolder: string): Promise<void> {
  const origin = join(fromRunFolder, originFile);
  if (existsSync(origin)) await copyFile(origin, join(toRunFolder, originFile));
}
