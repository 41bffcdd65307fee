import { join, resolve } from "node:path";
import { Cache } from "../adapters/environments/cache.js";
import { type FrozenEnvironment, freezeEnvironment, openFrozen } from "../adapters/environments/freeze.js";
import { type LoadedEnvironment, loadEnvironment } from "../adapters/environments/load.js";
import { type DataFolders, packagesOf, prepareData } from "../adapters/environments/prepare-data.js";
import { type Progress, prefixRuntime, pythonRuntime, type Runtime, systemRuntime } from "../adapters/environments/runtime.js";
import { reachableRuntime } from "../adapters/environments/staged-prefix.js";
import { Surroundings, type SurroundingsRecord } from "../adapters/environments/surroundings.js";
import type { Executor } from "../core/ports/executor.js";
import type { PreparedEnvironment } from "../core/ports/prepared-environment.js";
import { workspacePlace } from "../research/engine/places.js";

/** Where long work on this machine is kept, and what its children may see of our environment. */
export interface Host {
  readonly cache: Cache;
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Where devices are looked for; absent: on this machine. */
  readonly deviceRoot?: string;
}

export async function openHost(variables: Readonly<Record<string, string | undefined>> = process.env): Promise<Host> {
  return { cache: await Cache.open(variables), variables };
}

/** Loads an environment's folder and freezes it by digest. */
export async function freezeFolder(host: Host, folder: string): Promise<{ loaded: LoadedEnvironment; frozen: FrozenEnvironment }> {
  const loaded = await loadEnvironment(folder);
  return { loaded, frozen: await freezeEnvironment(loaded, host.cache) };
}

export function frozenByDigest(host: Host, digest: string): Promise<FrozenEnvironment> {
  return openFrozen(host.cache, digest);
}

export interface ReadyEnvironment {
  readonly prepared: PreparedEnvironment;
  /** Held-out data stays out of `prepared`: only the operator's command sees it. */
  readonly data: DataFolders;
}

/** Builds the runtime and prepares the data, or finds them in the cache. */
export async function readyEnvironment(
  host: Host,
  frozen: FrozenEnvironment,
  executor: Executor,
  sandbox: "bubblewrap" | "none",
  progress: Progress,
  expected: SurroundingsRecord = { mounts: frozen.mounts, prefix: null },
): Promise<ReadyEnvironment> {
  const runtime = await runtimeOf(host, frozen, progress);
  const data = await prepareData(frozen, host.cache, executor, sandbox, progress);
  return { prepared: preparedFrom(host, frozen, runtime, data, sandbox, expected), data };
}

/** The same with data that lies ready somewhere. */
export async function readyWithData(
  host: Host,
  frozen: FrozenEnvironment,
  data: Pick<DataFolders, "public" | "inloop">,
  sandbox: "bubblewrap" | "none",
  progress: Progress,
): Promise<PreparedEnvironment> {
  const expected = { mounts: frozen.mounts, prefix: null };
  return preparedFrom(host, frozen, await runtimeOf(host, frozen, progress), data, sandbox, expected);
}

function preparedFrom(
  host: Host,
  frozen: FrozenEnvironment,
  runtime: Runtime,
  data: Pick<DataFolders, "public" | "inloop">,
  sandbox: "bubblewrap" | "none",
  expected: SurroundingsRecord,
): PreparedEnvironment {
  const { environment } = frozen;
  const surroundings = new Surroundings(environment, host.cache, expected);
  return {
    environment,
    digest: frozen.digest,
    packFolder: frozen.packFolder,
    contextFolder: frozen.contextFolder,
    data: { public: data.public, inloop: data.inloop },
    runtime,
    mounts: environment.mounts.map(({ source, target }) => ({
      source,
      target: sandbox === "none" ? source : resolve(workspacePlace, target),
      mode: "read-only" as const,
    })),
    changed: () => surroundings.changed(),
    scratchFolder: host.cache.folder("scratch", ""),
  };
}

async function runtimeOf(host: Host, frozen: FrozenEnvironment, progress: Progress): Promise<Runtime> {
  const { runtime } = frozen.environment;
  if (runtime === null) return systemRuntime;
  if (runtime.kind === "prefix") return reachableRuntime(prefixRuntime(runtime.use), host.cache, progress);
  return pythonRuntime(join(frozen.packFolder, runtime.lock), runtime.requires, host.cache, progress, packagesOf(frozen));
}
