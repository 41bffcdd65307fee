import { createHash } from "node:crypto";
import { closeSync, lstatSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { canonicalJson, type Digest } from "../../core/protocol/canonical.js";
import type { Environment } from "../../core/protocol/environment.js";
import type { Cache } from "./cache.js";
import { DigestMemory } from "./digest-memory.js";
import { digestKnown, type KnownDigests } from "./file-digest.js";
import { walkFolder } from "./folder-files.js";

type MountOf = Environment["mounts"][number];

const entriesAtOnce = 1000;

/**
 * An external folder's digest, as thorough as the contract asks: nothing, names and sizes, with times, or with every
 * byte. Entries are hashed as they are met, so that a folder with millions of files takes no more memory than one.
 */
export async function digestMount(mount: MountOf, cache: Cache | null = null): Promise<Digest> {
  const memory = cache === null || mount.digest !== "full" ? null : DigestMemory.open(cache, mount.source);
  try {
    return await digestLines(mount, memory);
  } finally {
    memory?.close();
  }
}

async function digestLines(mount: MountOf, memory: KnownDigests | null): Promise<Digest> {
  const hash = createHash("sha256").update(`{"digest":${canonicalJson(mount.digest)},"lines":[`);
  let lines = 0;
  for (const entry of mount.digest === "none" ? [] : walkFolder(mount.source)) {
    const path = join(mount.source, entry.path);
    let line: unknown = [entry.path, entry.kind, entry.bytes];
    if (mount.digest === "stat") line = [entry.path, entry.kind, entry.bytes, Math.trunc(entry.mtimeMs)];
    if (mount.digest === "full" && entry.kind === "file") line = [entry.path, (await digestKnown(path, memory)).digest];
    hash.update(`${lines === 0 ? "" : ","}${canonicalJson(line)}`);
    lines += 1;
    if (lines % entriesAtOnce === 0) await turnOfTheLoop();
  }
  return hash.update(`],"target":${canonicalJson(mount.target)}}`).digest("hex");
}

const pointerBegins = "version https://git-lfs.github.com/spec/";
const pointerMaxBytes = 1024;
const namedPointers = 3;

/** What a person should know of mounts: files at their top that only stand for a file that git LFS has not fetched. */
export function notesOnMounts(mounts: Environment["mounts"]): string[] {
  return mounts.flatMap(({ source }) => {
    const pointers = readdirSync(source, { withFileTypes: true })
      .filter((entry) => entry.isFile() && isPointer(join(source, entry.name)))
      .map((entry) => entry.name);
    if (pointers.length === 0) return [];
    const more = pointers.length > namedPointers ? ` and ${pointers.length - namedPointers} more` : "";
    return [
      `${source}: ${pointers.slice(0, namedPointers).join(", ")}${more} ${pointers.length === 1 ? "is a pointer" : "are pointers"} of git LFS, not the content; \`git lfs pull\` there fetches it`,
    ];
  });
}

function isPointer(path: string): boolean {
  if (lstatSync(path).size > pointerMaxBytes) return false;
  const buffer = Buffer.alloc(pointerBegins.length);
  const file = openSync(path, "r");
  try {
    return readSync(file, buffer) === buffer.byteLength && buffer.toString("latin1") === pointerBegins;
  } finally {
    closeSync(file);
  }
}
