import { randomBytes } from "node:crypto";
import { chmod, link, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type CandidateManifest, manifestOf } from "../../core/protocol/candidate.js";
import { canonicalJson, type Digest, digestOf, digestOfValue } from "../../core/protocol/canonical.js";
import type { Environment } from "../../core/protocol/environment.js";
import { TrialistError } from "../../core/protocol/errors.js";
import { type Cache, makeOpenFolder } from "./cache.js";
import { canaryName, plantCanary } from "./canary.js";
import { digestFile, type FileRecord, firstDifference, openRegular, recordFolder } from "./file-digest.js";
import type { LoadedEnvironment, SurfaceFile } from "./load.js";
import { digestMount } from "./mount-digest.js";

/** A frozen environment is missing from the cache, or is not what its digest says. */
export class FrozenEnvironmentError extends TrialistError {
  readonly kind = "corrupt";
}

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
}

/** A candidate as it lies in files, with their bytes. */
export interface CandidateFiles {
  readonly manifest: CandidateManifest;
  readonly contents: ReadonlyMap<Digest, Uint8Array>;
}

/** What the digest is made of. Held-out data is not: looking at it would be a look. */
interface Inventory {
  readonly environment: Environment;
  readonly files: readonly (FileRecord & { readonly executable: boolean })[];
  /** Paths of the files that workspaces hold too; null for a pack with a baseline folder of its own. */
  readonly context: readonly string[] | null;
  readonly data: Readonly<Record<string, readonly FileRecord[]>>;
  readonly mounts: readonly Digest[];
}

const inventoryFile = "inventory.json";
/** Beside the frozen pack: digests of the canaries in data that it brought ready-made. */
export const canariesFile = "canaries.json";

/** Digest of an environment as it lies in its folder now. */
export async function digestEnvironment(loaded: LoadedEnvironment): Promise<Digest> {
  return digestOfValue(await inventoryOf(loaded));
}

/**
 * Copies the pack into the cache under its digest. One that is there already is checked and used; one that was altered
 * is put aside and copied anew, since the digest says what it must be.
 */
export async function freezeEnvironment(loaded: LoadedEnvironment, cache: Cache): Promise<FrozenEnvironment> {
  const inventory = await inventoryOf(loaded);
  const digest = digestOfValue(inventory);
  const folder = cache.folder("environments", digest);
  const existing = await openFrozen(cache, digest).catch((error: unknown) => {
    if (error instanceof FrozenEnvironmentError) return null;
    throw error;
  });
  if (existing !== null) return existing;
  await rename(folder, `${folder}.damaged-${randomBytes(4).toString("hex")}`).catch(ignoreMissing);
  await copyPack(loaded, inventory, folder);
  return openFrozen(cache, digest);
}

/** A frozen environment from the cache, every file checked. @throws FrozenEnvironmentError when it is missing or altered */
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
  if (digestOf(text) !== digest) throw altered(folder, `${inventoryFile} has other content`);
  const inventory = JSON.parse(text) as Inventory;
  await assertUnaltered(folder, inventory);
  return {
    digest,
    environment: inventory.environment,
    packFolder: join(folder, "pack"),
    contextFolder: inventory.context === null ? null : join(folder, "context"),
    dataFolder: bringsData(inventory.environment) ? join(folder, "data") : null,
  };
}

async function assertUnaltered(folder: string, inventory: Inventory): Promise<void> {
  const context = new Set(inventory.context ?? []);
  const parts: [string, readonly FileRecord[]][] = [
    ["pack", inventory.files],
    ...Object.entries(inventory.data).map(([name, files]): [string, readonly FileRecord[]] => [`data/${name}`, files]),
  ];
  if (inventory.context !== null) parts.push(["context", inventory.files.filter((file) => context.has(file.path))]);
  for (const [part, files] of parts) {
    const difference = await firstDifference(join(folder, part), files, [canaryName]);
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

async function inventoryOf(loaded: LoadedEnvironment): Promise<Inventory> {
  const { environment } = loaded;
  const files = [];
  for (const file of loaded.files)
    files.push({ path: file.path, ...(await digestFile(join(loaded.folder, file.source))), executable: file.executable });
  const data: Record<string, readonly FileRecord[]> = {};
  for (const name of bringsData(environment) ? (["public", "inloop"] as const) : []) {
    const path = environment.data?.[name];
    if (path != null) data[name] = (await recordFolder(join(loaded.folder, path))).files;
  }
  const mounts = [];
  for (const mount of environment.mounts) mounts.push(await digestMount(mount));
  return { environment, files, context: loaded.ownFolder ? loaded.context.map((file) => file.path) : null, data, mounts };
}

async function copyPack(loaded: LoadedEnvironment, inventory: Inventory, folder: string): Promise<void> {
  const temporary = `${folder}.${randomBytes(6).toString("hex")}.partial`;
  try {
    await fillPack(loaded, inventory, temporary);
    await rename(temporary, folder);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // Another process froze the same content first: its copy is as good.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
  }
}

async function fillPack(loaded: LoadedEnvironment, inventory: Inventory, temporary: string): Promise<void> {
  const sources = new Map(loaded.files.map((file) => [file.path, file.source]));
  await makeOpenFolder(join(temporary, "pack"));
  for (const file of inventory.files) {
    await copyChecked(join(loaded.folder, sources.get(file.path) ?? file.path), join(temporary, "pack", file.path), file, file.executable);
  }
  if (inventory.context !== null) await makeOpenFolder(join(temporary, "context"));
  for (const path of inventory.context ?? []) {
    await makeOpenFolder(dirname(join(temporary, "context", path)));
    await link(join(temporary, "pack", path), join(temporary, "context", path));
  }
  await copyData(loaded, inventory, temporary);
  await writeDurably(join(temporary, inventoryFile), canonicalJson(inventory));
}

async function copyData(loaded: LoadedEnvironment, inventory: Inventory, temporary: string): Promise<void> {
  const { data } = inventory.environment;
  if (data === null || !bringsData(inventory.environment)) return;
  await makeOpenFolder(join(temporary, "data"));
  const canaries: Record<string, Digest> = {};
  for (const name of ["public", "inloop", "heldout"] as const) {
    const path = data[name];
    if (path === null) continue;
    const source = join(loaded.folder, path);
    const files = inventory.data[name] ?? (await recordFolder(source)).files;
    await makeOpenFolder(join(temporary, "data", name));
    for (const file of files) await copyChecked(join(source, file.path), join(temporary, "data", name, file.path), file, false);
    if (name !== "public") canaries[name] = await plantCanary(join(temporary, "data", name));
    if (name === "heldout") await writeDurably(join(temporary, "heldout.json"), canonicalJson(files));
  }
  await writeDurably(join(temporary, canariesFile), canonicalJson(canaries));
}

/** Copies one file and refuses one that changed since it was read for the digest. */
async function copyChecked(source: string, target: string, record: FileRecord, executable: boolean): Promise<void> {
  await makeOpenFolder(dirname(target));
  const [from, to] = [await openRegular(source), await open(target, "wx", 0o644)];
  try {
    for await (const chunk of from.createReadStream({ highWaterMark: 2 ** 20 })) await to.writeFile(chunk as Buffer);
  } finally {
    await to.close();
  }
  if ((await digestFile(target)).digest !== record.digest) {
    throw new FrozenEnvironmentError({
      expected: "files that rest while they are frozen",
      found: "a file that changed in between",
      where: source,
      todo: "Let what writes it finish, then try again.",
    });
  }
  await chmod(target, executable ? 0o555 : 0o444);
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
