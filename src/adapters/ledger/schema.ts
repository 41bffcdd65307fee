import type { Database } from "better-sqlite3";
import { LedgerSchemaError } from "../../core/ports/ledger-errors.js";
import { emptyChain } from "./event-record.js";

/** One step of the schema. Steps are never edited once released; a change is a new step. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/**
 * `head` is one row that every append updates: it holds the owner's epoch, checked and moved in the same statement, and it
 * makes a removed tail visible. `chain` is hexadecimal, so that any SQLite shell shows it.
 */
export const ledgerMigrations: readonly Migration[] = [
  {
    version: 1,
    name: "events, head, blobs, checkpoints, heartbeat",
    sql: `
      CREATE TABLE events (
        sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, type TEXT NOT NULL, version INTEGER NOT NULL,
        data TEXT NOT NULL, chain TEXT NOT NULL
      ) STRICT;
      CREATE TABLE head (
        id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL, sequence INTEGER NOT NULL, chain TEXT NOT NULL
      ) STRICT;
      INSERT INTO head VALUES (1, 0, 0, '${emptyChain}');
      CREATE TABLE blobs (digest TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
      CREATE TABLE checkpoints (
        id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, chain TEXT NOT NULL, fold_version TEXT NOT NULL, state TEXT NOT NULL
      ) STRICT;
      CREATE TABLE heartbeat (id INTEGER PRIMARY KEY CHECK (id = 1), at INTEGER NOT NULL) STRICT;
    `,
  },
];

/** The schema's version in a database: the newest step applied, 0 for an empty file. */
export function schemaVersion(db: Database): number {
  const table = db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'").get();
  if (table === undefined) return 0;
  return db.prepare("SELECT coalesce(max(version), 0) FROM migrations").pluck().get() as number;
}

/** Brings a database to the newest schema, step by step, each in its transaction. A newer database is refused. */
export function migrate(db: Database, migrations: readonly Migration[], where: string): void {
  refuseNewerSchema(db, migrations, where);
  refuseForeign(db, where);
  db.exec("CREATE TABLE IF NOT EXISTS migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT");
  const record = db.prepare("INSERT INTO migrations VALUES (?, ?, ?)");
  for (const step of migrations) {
    const apply = db.transaction(() => {
      if (schemaVersion(db) >= step.version) return;
      db.exec(step.sql);
      record.run(step.version, step.name, Date.now());
    });
    apply.immediate();
  }
}

/** For readers, who may not migrate. @throws LedgerSchemaError unless the database has exactly the newest known schema */
export function requireSchema(db: Database, migrations: readonly Migration[], where: string): void {
  refuseNewerSchema(db, migrations, where);
  const found = schemaVersion(db);
  const known = newest(migrations);
  if (found === known) return;
  throw new LedgerSchemaError({
    expected: `schema ${known}`,
    found: found === 0 ? "no schema: an empty or foreign file" : `the older schema ${found}`,
    where,
    todo:
      found === 0
        ? "Check the path."
        : "Open the run once for writing (`trialist resume`), which brings it up to date; its events stay as they are.",
  });
}

function refuseForeign(db: Database, where: string): void {
  if (schemaVersion(db) > 0) return;
  const table = db.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'migrations'").pluck().get();
  if (table === undefined) return;
  const facts = {
    expected: "a database of trialist, or an empty one",
    found: `a foreign table ${table}`,
    where,
    todo: "Check the path; the file was left as it is.",
  };
  throw new LedgerSchemaError(facts);
}

function refuseNewerSchema(db: Database, migrations: readonly Migration[], where: string): void {
  const found = schemaVersion(db);
  const known = newest(migrations);
  if (found <= known) return;
  throw new LedgerSchemaError({
    expected: `schema ${known} or older`,
    found: `schema ${found}, written by a newer trialist`,
    where,
    todo: "Update trialist (`npm install trialist@latest`); this version will not touch the file.",
  });
}

function newest(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0;
}
