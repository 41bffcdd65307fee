import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { LedgerCorruptError, LedgerFullError, LedgerUnavailableError } from "../../core/ports/ledger-errors.js";

const fullCodes = new Set(["SQLITE_FULL", "ENOSPC", "EDQUOT"]);
const corruptCodes = ["SQLITE_CORRUPT", "SQLITE_NOTADB"];
const unavailableCodes = ["SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_BUSY", "SQLITE_PERM", "SQLITE_IOERR", "EACCES", "EROFS", "EIO"];

/** Runs database or file work and turns the system's failures into typed ones that name `path`. Typed errors pass through. */
export function withTypedFailures<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw typedFailure(error, path);
  }
}

/** The typed error for a failure of SQLite or of the file system, with the original as its cause; anything else unchanged. */
export function typedFailure(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (code === null) return error;
  if (fullCodes.has(code) || (code.startsWith("SQLITE_IOERR") && diskIsFull(path))) return new LedgerFullError(path, { cause: error });
  if (corruptCodes.some((known) => code.startsWith(known))) {
    return new LedgerCorruptError(
      null,
      "unreadable",
      { expected: "a SQLite database", found: `${code}: ${messageOf(error)}`, where: path },
      { cause: error },
    );
  }
  if (!unavailableCodes.some((known) => code.startsWith(known))) return error;
  const facts = {
    expected: "a ledger that can be opened and locked",
    found: `${code}: ${messageOf(error)}`,
    where: path,
    todo: advice(code),
  };
  return new LedgerUnavailableError(facts, { cause: error });
}

function advice(code: string): string {
  if (code.startsWith("SQLITE_BUSY")) return "Another process writes to it: wait, or see `trialist list` for who owns the run.";
  if (code.startsWith("SQLITE_IOERR") || code === "EIO")
    return "Check the disk (`dmesg`) and that the folder is on a local file system, not on a network share.";
  return "Check that the folder and its files may be read and written by this user; a copy in a writable folder can always be read.";
}

function codeOf(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  return typeof error.code === "string" ? error.code : null;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** SQLite reports some writes to a full disk as plain I/O errors (its shared-memory file); the disk itself knows. */
function diskIsFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path));
    return bavail * bsize < 64 * 1024;
  } catch {
    return false;
  }
}
