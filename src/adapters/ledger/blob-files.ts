import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { BlobCorruptError, BlobMissingError } from "../../core/ports/ledger-errors.js";
import { type Digest, digestOf } from "../../core/protocol/canonical.js";
import { makeDurableFolder, syncFolder } from "./run-files.js";
import { withTypedFailures } from "./sqlite-failures.js";

const digestPattern = /^[0-9a-f]{64}$/;

/** True for a SHA-256 in lower-case hexadecimal; nothing else ever becomes a path. */
export function isDigest(value: unknown): value is Digest {
  return typeof value === "string" && digestPattern.test(value);
}

/**
 * Blobs as files `ab/cdef…` in a folder that all runs share. A file appears under its name only when it is whole and on
 * the disk (temporary file, fsync, rename, fsync of the folder), so a power loss leaves at most an unnamed temporary file.
 */
export class BlobFiles {
  constructor(readonly folder: string) {}

  path(digest: Digest): string {
    if (!isDigest(digest)) throw new BlobMissingError(String(digest).slice(0, 100), this.folder);
    return join(this.folder, digest.slice(0, 2), digest.slice(2));
  }

  has(digest: Digest): boolean {
    return this.size(digest) !== null;
  }

  /** Bytes of a blob's file, null when there is no such regular file. */
  size(digest: Digest): number | null {
    const stat = lstatSync(this.path(digest), { throwIfNoEntry: false });
    return stat?.isFile() === true ? stat.size : null;
  }

  /** @throws BlobMissingError, BlobCorruptError */
  read(digest: Digest): Uint8Array {
    const path = this.path(digest);
    if (!this.has(digest)) throw new BlobMissingError(digest, path);
    const bytes = withTypedFailures(path, () => readFileSync(path));
    const actual = digestOf(bytes);
    if (actual !== digest) throw new BlobCorruptError(digest, actual, path);
    return bytes;
  }

  /** Writes a blob unless it is there, whole; a damaged file under its name is replaced. Durable on return. @throws LedgerFullError */
  write(digest: Digest, bytes: Uint8Array): void {
    if (this.#isWhole(digest)) return;
    const temporary = this.temporaryPath();
    try {
      withTypedFailures(this.path(digest), () => {
        writeDurably(temporary, bytes);
        this.adopt(temporary, digest);
      });
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
  }

  /** A fresh path on the same file system for bytes that are not a blob yet. */
  temporaryPath(): string {
    const folder = join(this.folder, "tmp");
    if (!existsSync(folder)) withTypedFailures(folder, () => makeDurableFolder(folder));
    return join(folder, `${process.pid}-${randomBytes(8).toString("hex")}`);
  }

  /** Gives a whole, fsynced temporary file its blob's name. */
  adopt(temporary: string, digest: Digest): void {
    const path = this.path(digest);
    const made = mkdirSync(dirname(path), { recursive: true });
    if (made !== undefined) syncFolder(this.folder);
    renameSync(temporary, path);
    syncFolder(dirname(path));
  }

  #isWhole(digest: Digest): boolean {
    if (!this.has(digest)) return false;
    const path = this.path(digest);
    try {
      if (digestOf(readFileSync(path)) !== digest) return false;
      touch(path);
    } catch (error) {
      // Removed meanwhile, because no ledger names it yet.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
      throw error;
    }
    syncFolder(dirname(path));
    return true;
  }
}

/** Young files are not removed as unneeded: this one is about to be named. */
function touch(path: string): void {
  try {
    const now = new Date();
    utimesSync(path, now, now);
  } catch (error) {
    // Somebody else's file, which only they remove.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EPERM" && code !== "EACCES" && code !== "EROFS") throw error;
  }
}

function writeDurably(path: string, bytes: Uint8Array): void {
  const descriptor = openSync(path, "wx", 0o444);
  try {
    writeFileSync(descriptor, bytes);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
