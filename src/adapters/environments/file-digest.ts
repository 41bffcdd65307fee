import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import type { Digest } from "../../core/protocol/canonical.js";
import { listFolder } from "./folder-files.js";

/** A file as a record names it. */
export interface FileRecord {
  readonly path: string;
  readonly bytes: number;
  readonly digest: Digest;
}

/** Who may know a file's digest without reading it. */
export interface KnownDigests {
  digest(path: string): Promise<{ digest: Digest; bytes: number }>;
}

/** Opens a regular file for reading and nothing else: no link is followed, no FIFO waited for. */
export async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw Object.assign(new Error(`${path} is no regular file`), { code: "EINVAL" });
}

const pieceBytes = 2 ** 20;
const bytesAtOnce = 16 * 2 ** 20;

/**
 * Digest and size of a file of any size, read once and in pieces. `also` gets every piece. One after the other and
 * without the thread pool: a small file costs a fraction of what a stream does, and the hash is what takes the time.
 */
export async function digestFile(path: string, also?: (piece: Buffer) => void): Promise<{ digest: Digest; bytes: number }> {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const facts = fstatSync(file);
    if (!facts.isFile()) throw Object.assign(new Error(`${path} is no regular file`), { code: "EINVAL" });
    const hash = createHash("sha256");
    const buffer = Buffer.allocUnsafe(Math.min(pieceBytes, facts.size + 1));
    let bytes = 0;
    for (let read = readSync(file, buffer); read > 0; read = readSync(file, buffer)) {
      const piece = buffer.subarray(0, read);
      hash.update(piece);
      also?.(piece);
      bytes += read;
      if (bytes % bytesAtOnce === 0) await turnOfTheLoop();
    }
    return { digest: hash.digest("hex"), bytes };
  } finally {
    closeSync(file);
  }
}

/** Digest and size, from memory where there is one that knows the file. */
export function digestKnown(path: string, memory: KnownDigests | null): Promise<{ digest: Digest; bytes: number }> {
  return memory === null ? digestFile(path) : memory.digest(path);
}

/** Records of every file below a folder, and the paths of what is no regular file. */
export async function recordFolder(
  folder: string,
  memory: KnownDigests | null = null,
): Promise<{ files: FileRecord[]; irregular: string[] }> {
  const files: FileRecord[] = [];
  const irregular: string[] = [];
  for (const entry of await listFolder(folder, new Set())) {
    if (entry.kind === "file") files.push({ path: entry.path, ...(await digestKnown(join(folder, entry.path), memory)) });
    else irregular.push(entry.path);
  }
  return { files, irregular };
}

/** The first difference between what was recorded and what lies in a folder, in a person's words; null when there is none. */
export async function firstDifference(
  folder: string,
  recorded: readonly FileRecord[],
  ignored: readonly string[] = [],
  memory: KnownDigests | null = null,
): Promise<string | null> {
  const found = await recordFolder(folder, memory).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error) return found.code === "ENOENT" ? `${folder} is gone` : found.message;
  if (found.irregular[0] !== undefined) return `${found.irregular[0]} is no regular file`;
  const now = new Map(found.files.map((file) => [file.path, file.digest]));
  for (const file of recorded) {
    const digest = now.get(file.path);
    if (digest === undefined) return `${file.path} is gone`;
    if (digest !== file.digest) return `${file.path} has other content`;
    now.delete(file.path);
  }
  const extra = [...now.keys()].find((path) => !ignored.includes(path));
  return extra === undefined ? null : `${extra} was added`;
}
