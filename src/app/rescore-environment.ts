import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { adoptFrozen, readForeignInventory } from "../adapters/environments/adopt-frozen.js";
import { Cache } from "../adapters/environments/cache.js";
import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { describeData } from "../adapters/environments/frozen-files.js";
import type { Inventory } from "../adapters/environments/inventory.js";
import { digestMount } from "../adapters/environments/mount-digest.js";
import type { Progress } from "../adapters/environments/runtime.js";
import { refuseBuilds } from "../adapters/environments/wheel-lock.js";
import type { Executor } from "../core/ports/executor.js";
import type { PreparedEnvironment } from "../core/ports/prepared-environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import { type Host, readyEnvironment, readyWithData } from "./environments.js";
import type { OpenedPacket } from "./packet-open.js";

/** What a person lets a packet use beside what it brings. */
export interface RescorePermissions {
  /** Folder with `public` and `inloop`, for data that the packet lacks. */
  readonly dataFolder: string | null;
  /** Folders of this machine that the packet's contract names: mounts, and a runtime that is an existing prefix. */
  readonly hostFolders: boolean;
}

const parts = ["public", "inloop"] as const;
type Found = Record<(typeof parts)[number], string | null>;

/**
 * Makes a packet's environment ready. It lies in a cache of its own, which vanishes with the packet: nothing that came
 * from elsewhere stands where this machine's own runs look. Runtimes alone are shared; a hash names what is in them.
 */
export async function environmentOfPacket(
  host: Host,
  opened: OpenedPacket,
  executor: Executor,
  work: string,
  permissions: RescorePermissions,
  progress: Progress,
): Promise<{ prepared: PreparedEnvironment; differences: string[] }> {
  const { digest } = opened.packet.environment;
  const inventory = readForeignInventory(opened.inventoryText, digest);
  refuseHostFolders(inventory, permissions);
  const found = await dataOf(opened, inventory, permissions);
  const cache = await Cache.open({ TRIALIST_CACHE: join(work, "cache") });
  const sources = { pack: join(opened.folder, "environment/pack"), ...found };
  const frozen = await adoptFrozen(cache, digest, opened.inventoryText, sources);
  for (const lock of locksOf(frozen)) await refuseBuilds(lock);
  const prepared = await ready(host, frozen, found, executor, progress);
  const differences = [...(await dataDifferences(opened, prepared)), ...(await mountDifferences(inventory))];
  return { prepared, differences };
}

async function ready(
  host: Host,
  frozen: FrozenEnvironment,
  found: Found,
  executor: Executor,
  progress: Progress,
): Promise<PreparedEnvironment> {
  const isPrepared = frozen.environment.data?.prepare != null;
  if (isPrepared && (found.public !== null || found.inloop !== null)) return readyWithData(host, frozen, found, "bubblewrap", progress);
  return (await readyEnvironment(host, frozen, executor, "bubblewrap", progress)).prepared;
}

function refuseHostFolders({ environment: { mounts, runtime } }: Inventory, { hostFolders }: RescorePermissions): void {
  const named = [...mounts.map((mount) => mount.source), ...(runtime?.kind === "prefix" ? [runtime.use] : [])];
  if (named.length === 0) return;
  const listed = named.map((path) => JSON.stringify(path)).join(", ");
  if (!hostFolders)
    throw new RefusedError({
      expected: "leave to show programs of this packet folders of this machine",
      found: `a contract that names ${listed}`,
      todo: "Look at what lies there; --host-folders gives leave to read it, and nothing else.",
    });
  const missing = named.filter((path) => !existsSync(path));
  if (missing.length > 0)
    throw new RefusedError({
      expected: "the folders that the packet's contract names",
      found: `no ${missing.map((path) => JSON.stringify(path)).join(", no ")}`,
      todo: "Put them in their places: a packet holds no mounts.",
    });
}

/** Where each folder of data lies: in the packet, or where the person says; null where a preparation makes it, or there is none. */
async function dataOf(opened: OpenedPacket, inventory: Inventory, { dataFolder }: RescorePermissions): Promise<Found> {
  const isPrepared = inventory.environment.data?.prepare != null;
  const found: Found = { public: null, inloop: null };
  const missing: string[] = [];
  for (const part of parts) {
    const described = opened.packet.data[part];
    const wanted = inventory.data[part] !== undefined || described !== null;
    const given = dataFolder === null ? null : join(resolve(dataFolder), part);
    if (described?.included === true) found[part] = join(opened.folder, "data", part);
    else if (wanted && given !== null && existsSync(given)) found[part] = await sameData(given, described?.digest ?? null);
    else if (wanted && (!isPrepared || dataFolder !== null)) missing.push(part);
  }
  const isPartial = isPrepared && dataFolder === null && (found.public === null) !== (found.inloop === null);
  if (missing.length === 0 && !isPartial) return found;
  if (missing.length === 0) return { public: null, inloop: null };
  throw new RefusedError({
    expected: `the data that the packet does not hold: ${missing.join(" and ")}`,
    found: dataFolder === null ? "no --data" : `no folder ${missing.map((part) => JSON.stringify(join(dataFolder, part))).join(", no ")}`,
    todo: `Name a folder that has ${missing.map((part) => `${part}/`).join(" and ")} with --data, or ask for a packet made with --with-data.`,
  });
}

async function sameData(folder: string, digest: string | null): Promise<string> {
  const { described } = await describeData(folder);
  if (digest === null || described.digest === digest) return folder;
  throw new RefusedError({
    expected: `the data that the run measured with, ${digest}`,
    found: `other data, ${described.digest}, ${described.files} files`,
    where: folder,
    todo: "Ask whoever made the packet for the data.",
  });
}

function locksOf({ environment: { runtime, data }, packFolder }: FrozenEnvironment): string[] {
  const named = [runtime?.kind === "python" ? runtime.lock : null, data?.prepareRuntime ?? null];
  return named.filter((path) => path !== null).map((path) => join(packFolder, path));
}

async function dataDifferences({ packet }: OpenedPacket, { data }: PreparedEnvironment): Promise<string[]> {
  const differences: string[] = [];
  for (const part of parts) {
    const [recorded, folder] = [packet.data[part], data[part]];
    if (recorded === null || folder === null || (await describeData(folder)).described.digest === recorded.digest) continue;
    differences.push(`${part} data: what the preparation made here is not what the run had`);
  }
  return differences;
}

async function mountDifferences({ environment, mounts }: Inventory): Promise<string[]> {
  const differences: string[] = [];
  for (const [index, mount] of environment.mounts.entries())
    if ((await digestMount(mount)) !== mounts[index])
      differences.push(`the mount ${mount.target}: another digest (${mount.digest}) than the run saw`);
  return differences;
}
