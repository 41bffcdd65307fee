import { randomBytes } from "node:crypto";
import { linkSync } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { asDiskFull } from "../../core/ports/disk-full.js";
import { type CandidateManifest, manifestOf } from "../../core/protocol/candidate.js";
import { canonicalJson, type Digest, digestOf, digestOfValue } from "../../core/protocol/canonical.js";
import type { Environment } from "../../core/protocol/environment.js";
import { type Cache, makeOpenFolder } from "./cache.js";
import { canaryName, plantCanary } from "./canary.js";
import { DigestMemory } from "./digest-memory.js";
import { EarlierCopy } from "./earlier-copy.js";
import { digestKnown, type FileRecord, firstDifference, openRegular, recordFolder } from "./file-digest.js";
import { FrozenCopier, FrozenEnvironmentError } from "./frozen-copy.js";
import { type Inventory, inventoryFile } from "./inventory.js";
import type { LoadedEnvironment, SurfaceFile } from "./load.js";
import { digestMount } from "./mount-digest.js";

/** A frozen environment: one digest over its contract and every file of its pack. */
export interface FrozenEnvironment {
  readonly digest: Digest;
  readonly environment: Environment;
  /** Read-only copy, by digest. */
  readonly packFolder: string;
  /** The pack's files that a workspace holds beside the candidate; null for a pack with a baseline folder of its own. */
  readonly contextFolder: string | null;
  /** Read-only copies of data that the pack brings ready-made; null where a preparation makes it, or there is none. */
  readonly dataFolder: string | null;
  /** Digests of its mounts, in the contract's order. */
  readonly mounts: readonly Digest[];
  /** Whose programs we may run outside of the sandbox: the packages of one from elsewhere are never built. */
  readonly from: "here" | "elsewhere";
}

/** A candidate as it lies in files, with their bytes. */
export interface CandidateFiles {
  readonly manifest: CandidateManifest;
  readonly contents: ReadonlyMap<Digest, Uint8Array>;
}

/** Beside the frozen pack: digests of the canaries in data that it brought ready-made. */
export const canariesFile = "canaries.json";

/** Digest of an environment as it lies in its folder now. With a cache, files that did not change are not read again. */
export async function digestEnvironment(loaded: LoadedEnvironment, cache: Cache | null = null): Promise<Digest> {
  return digestOfValue(await inventoryOf(loaded, cache));
}

/**
 * Copies the pack into the cache under its digest. One that is there already is checked and used; one that was altered
 * is put aside and copied anew, since the digest says what it must be.
 */
export async function freezeEnvironment(loaded: LoadedEnvironment, cache: Cache): Promise<FrozenEnvironment> {
  const inventory = await inventoryOf(loaded, cache);
  const digest = digestOfValue(inventory);
  const folder = cache.folder("environments", digest);
  const existing = await openFrozen(cache, digest).catch((error: unknown) => {
    if (error instanceof FrozenEnvironmentError) return null;
    throw error;
  });
  if (existing !== null) {
    EarlierCopy.remember(cache, loaded.folder, digest);
    return existing;
  }
  const earlier = EarlierCopy.of(cache, loaded.folder);
  await rename(folder, `${folder}.damaged-${randomBytes(4).toString("hex")}`).catch(ignoreMissing);
  const isCopied = await copyPack(loaded, inventory, earlier, folder)
    .finally(() => sleep(clockMs))
    .finally(() => earlier?.close());
  if (isCopied) await rememberCopies(cache, folder, inventory);
  EarlierCopy.remember(cache, loaded.folder, digest);
  return openFrozen(cache, digest);
}

/**
 * A frozen environment from the cache, every file checked: against its digest, or where it rested since that was done,
 * by the times that the kernel keeps. @throws FrozenEnvironmentError when it is missing or altered */
export async function openFrozen(cache: Cache, digest: Digest): Promise<FrozenEnvironment> {
  const folder = cache.folder("environments", digest);
  const text = await readFile(join(folder, inventoryFile), "utf8").catch(() => null);
  if (text === null) {
    throw new FrozenEnvironmentError({
      expected: `the frozen environment ${digest} in the cache`,
      found: "nothing",
      where: folder,
      todo: "Start the run again from the same environment folder, or bring the cache back.",
    });
  }
  cache.markUsed(folder);
  if (digestOf(text) !== digest) throw altered(folder, `${inventoryFile} has other content`);
  const inventory = JSON.parse(text) as Inventory;
  const memory = DigestMemory.open(cache, folder);
  await assertUnaltered(folder, inventory, memory).finally(() => memory.close());
  return {
    digest,
    environment: inventory.environment,
    packFolder: join(folder, "pack"),
    contextFolder: inventory.context === null ? null : join(folder, "context"),
    dataFolder: bringsData(inventory.environment) ? join(folder, "data") : null,
    mounts: inventory.mounts,
    from: "here",
  };
}

async function assertUnaltered(folder: string, inventory: Inventory, memory: DigestMemory): Promise<void> {
  const context = new Set(inventory.context ?? []);
  const parts: [string, readonly FileRecord[]][] = [
    ["pack", inventory.files],
    ...Object.entries(inventory.data).map(([name, files]): [string, readonly FileRecord[]] => [`data/${name}`, files]),
  ];
  if (inventory.context !== null) parts.push(["context", inventory.files.filter((file) => context.has(file.path))]);
  for (const [part, files] of parts) {
    const difference = await firstDifference(join(folder, part), files, [canaryName], memory);
    if (difference !== null) throw altered(join(folder, part), difference);
  }
}

function altered(where: string, found: string): FrozenEnvironmentError {
  return new FrozenEnvironmentError({
    expected: "a frozen environment as it was copied",
    found,
    where,
    todo: "Nothing measured with it can be trusted; `trialist run` from the original folder copies it anew.",
  });
}

function bringsData(environment: Environment): boolean {
  return environment.data !== null && environment.data.prepare === null;
}

async function inventoryOf(loaded: LoadedEnvironment, cache: Cache | null): Promise<Inventory> {
  const memory = cache === null ? null : DigestMemory.open(cache, loaded.folder);
  try {
    return await readInventory(loaded, cache, memory);
  } finally {
    memory?.close();
  }
}

async function readInventory(loaded: LoadedEnvironment, cache: Cache | null, memory: DigestMemory | null): Promise<Inventory> {
  const { environment } = loaded;
  const files = [];
  for (const file of loaded.files)
    files.push({ path: file.path, ...(await digestKnown(join(loaded.folder, file.source), memory)), executable: file.executable });
  const data: Record<string, readonly FileRecord[]> = {};
  for (const name of bringsData(environment) ? (["public", "inloop"] as const) : []) {
    const path = environment.data?.[name];
    if (path != null) data[name] = (await recordFolder(join(loaded.folder, path), memory)).files;
  }
  const mounts = [];
  for (const mount of environment.mounts) mounts.push(await digestMount(mount, cache));
  return { environment, files, context: loaded.ownFolder ? loaded.context.map((file) => file.path) : null, data, mounts };
}

/** False when another process was first. */
async function copyPack(loaded: LoadedEnvironment, inventory: Inventory, earlier: EarlierCopy | null, folder: string): Promise<boolean> {
  const temporary = `${folder}.${randomBytes(6).toString("hex")}.partial`;
  try {
    await fillPack(loaded, inventory, earlier, temporary);
    await rename(temporary, folder);
    return true;
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // Another process froze the same content first: its copy is as good.
    const full = asDiskFull(error, folder);
    if (full !== null) throw full;
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    return false;
  }
}

/** The kernel's clock for files stands still for some milliseconds: a change in the same moment could not be told. */
const clockMs = 20;

/** What was copied was digested while it was written: opening it need not read it again. */
async function rememberCopies(cache: Cache, folder: string, inventory: Inventory): Promise<void> {
  const memory = DigestMemory.open(cache, folder);
  try {
    for (const file of inventory.files) memory.remember(join(folder, "pack", file.path), file.digest);
    for (const [name, files] of Object.entries(inventory.data))
      for (const file of files) memory.remember(join(folder, "data", name, file.path), file.digest);
  } finally {
    memory.close();
  }
}

async function fillPack(loaded: LoadedEnvironment, inventory: Inventory, earlier: EarlierCopy | null, temporary: string): Promise<void> {
  const sources = new Map(loaded.files.map((file) => [file.path, file.source]));
  await makeOpenFolder(join(temporary, "pack"));
  const copier = new FrozenCopier();
  for (const file of inventory.files) {
    const target = join(temporary, "pack", file.path);
    await copier.openFolder(target);
    if (earlier?.link(file, target) === true) continue;
    await copier.copy(join(loaded.folder, sources.get(file.path) ?? file.path), target, file, file.executable);
  }
  if (inventory.context !== null) await makeOpenFolder(join(temporary, "context"));
  for (const folder of new Set((inventory.context ?? []).map((path) => dirname(join(temporary, "context", path)))))
    await makeOpenFolder(folder);
  for (const path of inventory.context ?? []) linkSync(join(temporary, "pack", path), join(temporary, "context", path));
  await copyData(loaded, inventory, temporary);
  await writeDurably(join(temporary, inventoryFile), canonicalJson(inventory));
}

async function copyData(loaded: LoadedEnvironment, inventory: Inventory, temporary: string): Promise<void> {
  const { data } = inventory.environment;
  if (data === null || !bringsData(inventory.environment)) return;
  await makeOpenFolder(join(temporary, "data"));
  const copier = new FrozenCopier();
  const canaries: Record<string, Digest> = {};
  for (const name of ["public", "inloop", "heldout"] as const) {
    const path = data[name];
    if (path === null) continue;
    const source = join(loaded.folder, path);
    const files = inventory.data[name] ?? (await recordFolder(source)).files;
    await makeOpenFolder(join(temporary, "data", name));
    for (const file of files) await copier.copy(join(source, file.path), join(temporary, "data", name, file.path), file, false);
    if (name !== "public") canaries[name] = await plantCanary(join(temporary, "data", name));
    if (name === "heldout") await writeDurably(join(temporary, "heldout.json"), canonicalJson(files));
  }
  await writeDurably(join(temporary, canariesFile), canonicalJson(canaries));
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "w");
  await file.writeFile(text);
  await file.sync();
  await file.close();
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}

/** Reads the files of a candidate that a loaded environment names. */
export async function readCandidate(folder: string, files: readonly SurfaceFile[]): Promise<CandidateFiles> {
  const contents = new Map<Digest, Uint8Array>();
  const manifest = [];
  for (const file of files) {
    const handle = await openRegular(join(folder, file.source));
    const bytes = await handle.readFile().finally(() => handle.close());
    const digest = digestOf(bytes);
    contents.set(digest, bytes);
    manifest.push({ path: file.path, digest, bytes: bytes.byteLength, executable: file.executable });
  }
  return { manifest: manifestOf(manifest), contents };
}
