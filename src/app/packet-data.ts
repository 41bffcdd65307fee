import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { describeData, describeFiles } from "../adapters/environments/frozen-files.js";
import type { Inventory } from "../adapters/environments/inventory.js";
import { type DataFolders, prepareData } from "../adapters/environments/prepare-data.js";
import type { Progress } from "../adapters/environments/runtime.js";
import type { Packet } from "../core/protocol/packet.js";
import type { Host } from "./environments.js";
import { withExecutor } from "./executors.js";

/** Data of a packet: what there is, what goes in, what stays. */
export interface PackedData {
  readonly described: Packet["data"];
  readonly files: readonly { readonly path: string; readonly source: string }[];
  readonly leftOut: Packet["leftOut"];
}

interface Choice {
  readonly withData: boolean;
  readonly sandbox: "bubblewrap" | "none";
  readonly progress: Progress;
}

const parts = ["public", "inloop"] as const;

/** Data that the environment brings goes in; labels, and what a preparation makes again, only when asked for. Held-out data is not looked at. */
export async function gatherData(host: Host, frozen: FrozenEnvironment, inventory: Inventory, choice: Choice): Promise<PackedData> {
  const { data } = frozen.environment;
  const isPrepared = data?.prepare != null;
  const folders = isPrepared ? await preparedData(host, frozen, choice) : null;
  const described: { public: Packet["data"]["public"]; inloop: Packet["data"]["inloop"] } = { public: null, inloop: null };
  const files: { path: string; source: string }[] = [];
  const leftOut: { what: string; why: string }[] = [];
  for (const part of parts) {
    const folder = folders === null ? broughtFolder(frozen, part) : folders[part];
    if (folder === null) continue;
    const known = isPrepared
      ? await describeData(folder)
      : { files: inventory.data[part] ?? [], described: describeFiles(inventory.data[part] ?? []) };
    const included = choice.withData || (part === "public" && !isPrepared);
    described[part] = { ...known.described, included };
    if (included) files.push(...known.files.map(({ path }) => ({ path: `data/${part}/${path}`, source: join(folder, path) })));
    else leftOut.push({ what: part === "public" ? "public data" : "in-loop data (labels)", why: reason(part, isPrepared) });
  }
  return { described, files, leftOut };
}

function reason(part: (typeof parts)[number], isPrepared: boolean): string {
  const again = isPrepared ? "the preparation makes it again" : "whoever measures again names it with --data";
  return part === "public" ? `${again}; --with-data adds it` : `labels go to nobody unasked; ${again}; --with-data adds it`;
}

function broughtFolder({ dataFolder, environment }: FrozenEnvironment, part: (typeof parts)[number]): string | null {
  return dataFolder === null || environment.data?.[part] == null ? null : join(dataFolder, part);
}

function preparedData(host: Host, frozen: FrozenEnvironment, { sandbox, progress }: Choice): Promise<DataFolders> {
  const key = `${randomBytes(6).toString("hex")}-pack-${process.pid}`;
  return withExecutor(host, key, ({ executor }) => prepareData(frozen, host.cache, executor, sandbox, progress));
}
