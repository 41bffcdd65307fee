import { existsSync } from "node:fs";
import SqliteDatabase, { type Database } from "better-sqlite3";
import { LedgerUnavailableError } from "../../core/ports/ledger-errors.js";
import { ledgerPath, makeDurableFolder, syncFolder } from "./run-files.js";
import { ledgerMigrations, migrate, requireSchema } from "./schema.js";
import { withTypedFailures } from "./sqlite-failures.js";

const busyTimeoutMs = 5000;

/** Opens a run's ledger for reading only, beside a living owner or without one. */
export function openForReading(runFolder: string): Database {
  const path = requireLedger(runFolder);
  return opened(path, { readonly: true }, (db) => requireSchema(db, ledgerMigrations, path));
}

/** Opens a run's ledger for writing and brings its schema up to date. The caller owns the run. */
export function openForWriting(runFolder: string): Database {
  const path = requireLedger(runFolder);
  return opened(path, {}, (db) => {
    setDurable(db);
    migrate(db, ledgerMigrations, path);
  });
}

/** Makes a ledger where there is none, durable on return. The caller owns the run. */
export function createDatabase(runFolder: string): Database {
  const path = ledgerPath(runFolder);
  if (existsSync(path)) {
    throw new LedgerUnavailableError({
      expected: "no ledger yet",
      found: "one that exists",
      where: path,
      todo: "Choose another name for the run, or go on with this one (`trialist resume`).",
    });
  }
  withTypedFailures(path, () => makeDurableFolder(runFolder));
  const db = opened(path, {}, (fresh) => {
    setDurable(fresh);
    migrate(fresh, ledgerMigrations, path);
  });
  withTypedFailures(path, () => syncFolder(runFolder));
  return db;
}

function opened(path: string, options: SqliteDatabase.Options, prepare: (db: Database) => void): Database {
  return withTypedFailures(path, () => {
    const db = new SqliteDatabase(path, { ...options, timeout: busyTimeoutMs });
    try {
      prepare(db);
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

function setDurable(db: Database): void {
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.pragma(`journal_size_limit = ${64 * 1024 * 1024}`);
}

function requireLedger(runFolder: string): string {
  const path = ledgerPath(runFolder);
  if (existsSync(path)) return path;
  throw new LedgerUnavailableError({
    expected: "a run's ledger",
    found: "no such file",
    where: path,
    todo: "Check the run's name (`trialist list`), or start it (`trialist run`).",
  });
}
