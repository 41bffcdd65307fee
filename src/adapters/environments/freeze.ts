import { constants } from "node:fs";
import { chmod, copyFile, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { canonicalJson, digestOf, digestOfValue } from "../../core/protocol/canonical.js";
import { type CandidateManifest, manifestOf } from "../../core/protocol/candidate.js";
import type { Environment } from "../../core/protocol/environment.js";
import type { Cache } from "./cache.js";
import type { LoadedEnvironment, SurfaceFile } from "./load.js";

/** A frozen environment: one digest over its contract and every file of its pack. */
export interface FrozenEnvironment {
  readonly digest: string;
  readonly environment: Environment;
  /** Read-only copy, by digest. */
  readonly packFolder: string;
  /** The pack's files that a workspace holds beside the candidate; null for a pack with a baseline folder of its own. */
  readonly contextFolder: string | null;
}

/** A candidate as it lies in files, with their bytes. */
export interface CandidateFiles {
  readonly manifest: CandidateManifest;
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

interface Inventory {
  readonly environment: Environment;
  readonly files: readonly { readonly path: string; readonly digest: string; readonly executable: boolean }[];
}

/** Digest of an environment as it lies in its folder now. */
export async function digestEnvironment(loaded: LoadedEnvironment): Promise<string> {
  return digestOfValue(await inventoryOf(loaded));
}

async function inventoryOf(loaded: LoadedEnvironment): Promise<Inventory> {
  const files = [];
  for (const file of loaded.files) {
    if (file.kind === "link") continue;
    files.push({ path: file.path, digest: digestOf(await readFile(join(loaded.folder, file.path))), executable: file.executable });
  }
  return { environment: loaded.environment, files };
}

/** Copies the pack into the cache under its digest; one that is there already is used as it is. */
export async function freezeEnvironment(loaded: LoadedEnvironment, cache: Cache): Promise<FrozenEnvironment> {
  const inventory = await inventoryOf(loaded);
  const digest = digestOfValue(inventory);
  const folder = cache.folder("environments", digest);
  const done = await readFile(join(folder, "inventory.json"), "utf8").catch(() => null);
  if (done === null) await copyPack(loaded, inventory, folder);
  return openFrozen(cache, digest);
}

/** A frozen environment from the cache. @throws when it is not there */
export async function openFrozen(cache: Cache, digest: string): Promise<FrozenEnvironment> {
  const folder = cache.folder("environments", digest);
  const inventory = JSON.parse(await readFile(join(folder, "inventory.json"), "utf8")) as Inventory & { ownFolder: boolean };
  return { digest, environment: inventory.environment, packFolder: join(folder, "pack"), contextFolder: inventory.ownFolder ? join(folder, "context") : null };
}

async function copyPack(loaded: LoadedEnvironment, inventory: Inventory, folder: string): Promise<void> {
  const temporary = `${folder}.${process.pid}.partial`;
  await rm(temporary, { recursive: true, force: true });
  const editable = new Set(loaded.baseline.map((file) => file.source));
  for (const file of inventory.files) {
    await place(join(loaded.folder, file.path), join(temporary, "pack", file.path), file.executable);
    if (loaded.ownFolder && !editable.has(file.path)) await place(join(loaded.folder, file.path), join(temporary, "context", file.path), file.executable);
  }
  if (loaded.ownFolder) await mkdir(join(temporary, "context"), { recursive: true });
  const record = await open(join(temporary, "inventory.json"), "w");
  await record.writeFile(canonicalJson({ ...inventory, ownFolder: loaded.ownFolder }));
  await record.sync();
  await record.close();
  await chmod(temporary, 0o755);
  await rename(temporary, folder).catch(async (error: NodeJS.ErrnoException) => {
    // Another process froze the same content first: its copy is as good.
    await rm(temporary, { recursive: true, force: true });
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}

async function place(source: string, target: string, executable: boolean): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  await copyFile(source, target, constants.COPYFILE_FICLONE);
  await chmod(target, executable ? 0o555 : 0o444);
}

/** Reads the files of a candidate that a loaded environment names. */
export async function readCandidate(folder: string, files: readonly SurfaceFile[]): Promise<CandidateFiles> {
  const contents = new Map<string, Uint8Array>();
  const manifest = [];
  for (const file of files) {
    const bytes = await readFile(join(folder, file.source));
    const digest = digestOf(bytes);
    contents.set(digest, bytes);
    manifest.push({ path: file.path, digest, bytes: bytes.byteLength, executable: file.executable });
  }
  return { manifest: manifestOf(manifest), contents };
}

