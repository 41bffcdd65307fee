import { chmodSync, closeSync, constants, copyFileSync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { TrialistError } from "../../core/protocol/errors.js";
import { makeOpenFolder } from "./cache.js";
import { digestFile, type FileRecord } from "./file-digest.js";

/** A frozen environment is missing from the cache, or is not what its digest says. */
export class FrozenEnvironmentError extends TrialistError {
  readonly kind = "corrupt";
}

const zeros = Buffer.alloc(2 ** 20);

/**
 * Copies files into the cache and refuses those that changed since they were read for the digest. Blocks are shared
 * where the file system can; elsewhere a file is read once, for its copy and its digest, and its holes stay holes.
 */
export class FrozenCopier {
  private sharesBlocks = true;
  private readonly folders = new Set<string>();

  async copy(source: string, target: string, record: FileRecord, executable: boolean): Promise<void> {
    await this.openFolder(target);
    const copied = this.clone(source, target) ? await digestFile(target) : await copyByBytes(source, target);
    if (copied.digest !== record.digest) {
      throw new FrozenEnvironmentError({
        expected: "files that rest while they are frozen",
        found: "a file that changed in between",
        where: source,
        todo: "Let what writes it finish, then try again.",
      });
    }
    chmodSync(target, executable ? 0o555 : 0o444);
  }

  /** Makes the folder that a file is to lie in. */
  async openFolder(target: string): Promise<void> {
    const folder = dirname(target);
    if (!this.folders.has(folder)) await makeOpenFolder(folder);
    this.folders.add(folder);
  }

  /** False where it cannot be done; no other file of the same folder is tried then. */
  private clone(source: string, target: string): boolean {
    if (!this.sharesBlocks) return false;
    try {
      copyFileSync(source, target, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === undefined || !["ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EXDEV", "EINVAL", "ENOTTY"].includes(code)) throw error;
      this.sharesBlocks = false;
      rmSync(target, { force: true });
      return false;
    }
  }
}

async function copyByBytes(source: string, target: string): Promise<{ digest: string; bytes: number }> {
  const file = openSync(target, "wx", 0o644);
  try {
    let place = 0;
    const copied = await digestFile(source, (piece) => {
      if (!piece.equals(zeros.subarray(0, piece.byteLength))) writeAll(file, piece, place);
      place += piece.byteLength;
    });
    ftruncateSync(file, place);
    return copied;
  } finally {
    closeSync(file);
  }
}

function writeAll(file: number, bytes: Buffer, place: number): void {
  for (let done = 0; done < bytes.byteLength; ) done += writeSync(file, bytes, done, bytes.byteLength - done, place + done);
}
