import { randomBytes } from "node:crypto";
import { link, lstat, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { create } from "tar";
import { TrialistError } from "../../core/protocol/errors.js";

/** The archive cannot be written where it should be. */
export class ArchiveWriteError extends TrialistError {
  readonly kind = "refused";
}

/**
 * Packs files of a folder into a new `.tar.gz`, so that equal files give equal bytes: in order of their paths, without
 * times, owners or anything else of this machine. It appears whole or not at all.
 * @throws ArchiveWriteError when there is something at that path, or it cannot be written
 */
export async function writeArchive(folder: string, paths: readonly string[], target: string): Promise<void> {
  const temporary = `${target}.${randomBytes(6).toString("hex")}.partial`;
  if ((await lstat(target).catch(() => null)) !== null) throw unwritable(target, new Error("something that is there already"));
  try {
    const ordered = [...paths].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    const portable = { portable: true, mtime: new Date(0), noDirRecurse: true, strict: true } as const;
    await create({ ...portable, file: temporary, cwd: folder, gzip: { level: 9, portable: true } }, ordered);
    await durable(temporary);
    await name(temporary, target);
    await durable(dirname(target));
  } catch (cause) {
    await rm(temporary, { force: true });
    throw unwritable(target, cause);
  }
}

/** A second name replaces nothing, where the file system has second names. */
async function name(temporary: string, target: string): Promise<void> {
  try {
    await link(temporary, target);
    await rm(temporary);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw error;
    await rename(temporary, target);
  }
}

async function durable(path: string): Promise<void> {
  const file = await open(path, "r");
  await file.sync().finally(() => file.close());
}

function unwritable(where: string, cause: unknown): ArchiveWriteError {
  const found = cause instanceof Error ? cause.message : String(cause);
  return new ArchiveWriteError(
    { expected: "a path for a new file, with room for it", found, where, todo: "Choose another --out; nothing was kept." },
    { cause },
  );
}
