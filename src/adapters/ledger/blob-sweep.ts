import { existsSync, lstatSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Digest } from "../../core/protocol/canonical.js";
import { isDigest } from "./blob-files.js";
import type { BlobNeeds, Overtaken } from "./blob-needs.js";
import { openForWriting } from "./database.js";
import { acquireOwner } from "./owner.js";
import { makeDurableFolder } from "./run-files.js";

export interface UnneededFile {
  readonly path: string;
  readonly bytes: number;
  /** Null: what a writer that died left. */
  readonly digest: Digest | null;
  /** Too young to be removed. */
  readonly young: boolean;
}

/**
 * Files among a project's blobs that no ledger needs, and what writers that died left there. Whoever stores a blob anew
 * touches its file, so that one as young as `youngMs` may be about to be named and is left.
 */
export function* unneededFiles(blobFolder: string, needs: BlobNeeds, now: number, youngMs: number): Generator<UnneededFile> {
  if (!existsSync(blobFolder)) return;
  for (const prefix of readdirSync(blobFolder)) {
    const folder = join(blobFolder, prefix);
    if (prefix !== "tmp" && !/^[0-9a-f]{2}$/.test(prefix)) continue;
    for (const name of readdirSync(folder)) {
      const digest = prefix + name;
      if (prefix !== "tmp" && (!isDigest(digest) || needs.needs(digest))) continue;
      const facts = lstatSync(join(folder, name), { throwIfNoEntry: false });
      if (facts?.isFile() !== true) continue;
      const young = now - facts.mtimeMs <= youngMs;
      yield { path: join(folder, name), bytes: facts.size, digest: prefix === "tmp" ? null : digest, young };
    }
  }
}

/** Removes one of them, unless somebody stored it anew meanwhile. */
export function removeUnneeded(blobFolder: string, file: UnneededFile, now: number, youngMs: number): boolean {
  const trash = join(blobFolder, "tmp", `unneeded-${process.pid}`);
  if (!existsSync(join(blobFolder, "tmp"))) makeDurableFolder(join(blobFolder, "tmp"));
  try {
    // Out of the way first: whoever touches it afterwards finds nothing, and writes it again.
    renameSync(file.path, trash);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  if (now - lstatSync(trash).mtimeMs <= youngMs) {
    renameSync(trash, file.path);
    return false;
  }
  rmSync(trash);
  return true;
}

/** Removes small blobs that a ledger lists as pruned from the ledger itself. @throws RunOwnedError when somebody works on it */
export function dropPrunedInline(runFolder: string, blobs: readonly Overtaken[]): void {
  const owner = acquireOwner(runFolder);
  try {
    const db = openForWriting(runFolder);
    try {
      const drop = db.prepare<[Digest]>("DELETE FROM blobs WHERE digest = ?");
      db.transaction(() => blobs.forEach(({ digest }) => void drop.run(digest)))();
    } finally {
      db.close();
    }
  } finally {
    owner.release();
  }
}
