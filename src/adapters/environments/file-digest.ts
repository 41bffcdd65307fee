import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import type { Digest } from "../../core/protocol/canonical.js";
import { listFolder } from "./folder-files.js";

/** A file as a record names it. */
export interface FileRecord {
  readonly path: string;
  readonly bytes: number;
  readonly digest: Digest;
}

/** Opens a regular file for reading and nothing else: no link is followed, no FIFO waited for. */
export async function openRegular(path: string): Promise<FileHandle> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw Object.assign(new Error(`${path} is no regular file`), { code: "EINVAL" });
}

/** Digest and size of a file of any size. */
export async function digestFile(path: string): Promise<{ digest: Digest; bytes: number }> {
  const file = await openRegular(path);
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of file.createReadStream({ highWaterMark: 2 ** 20 })) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).byteLength;
  }
  return { digest: hash.digest("hex"), bytes };
}

/** Records of every file below a folder, and the paths of what is no regular file. */
export async function recordFolder(folder: string): Promise<{ files: FileRecord[]; irregular: string[] }> {
  const files: FileRecord[] = [];
  const irregular: string[] = [];
  for (const entry of await listFolder(folder, new Set())) {
    if (entry.kind === "file") files.push({ path: entry.path, ...(await digestFile(join(folder, entry.path))) });
    else irregular.push(entry.path);
  }
  return { files, irregular };
}

/** The first difference between what was recorded and what lies in a folder, in a person's words; null when there is none. */
export async function firstDifference(
  folder: string,
  recorded: readonly FileRecord[],
  ignored: readonly string[] = [],
): Promise<string | null> {
  const found = await recordFolder(folder).catch((error: NodeJS.ErrnoException) => error);
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
