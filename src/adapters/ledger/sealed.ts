import { chmodSync, existsSync } from "node:fs";
import SqliteDatabase, { type Database } from "better-sqlite3";
import { z } from "zod";
import { LedgerCorruptError, LedgerUnavailableError } from "../../core/ports/ledger-errors.js";
import { canonicalJson, type Digest } from "../../core/protocol/canonical.js";
import { trialId } from "../../core/protocol/ids.js";
import { guarantees } from "../../core/protocol/outcome.js";
import { chainAfter, type EventRecord, emptyChain } from "./event-record.js";
import { EventTable } from "./event-table.js";
import { makeDurableFolder, sealedPath } from "./run-files.js";
import { type Migration, migrate, requireSchema } from "./schema.js";
import { withTypedFailures } from "./sqlite-failures.js";

const digest = z.string().regex(/^[0-9a-f]{64}$/);

/** One execution of the held-out evaluation. */
export const heldoutAttempt = z.strictObject({
  attempt: z.number().int().positive(),
  /** Seed that the evaluation ran with; null when it takes none. */
  seed: z.number().int().nullable(),
  /** How it ended, in a word of the status vocabulary. */
  ended: z.string().min(1).max(60),
  values: z.record(z.string().min(1).max(200), z.number()).nullable(),
  wallMs: z.number().nonnegative(),
  guarantees: guarantees.nullable(),
});

/** One look at held-out data: it counts whether or not it gave values, so a failed one is recorded too. */
export const look = z
  .strictObject({
    /** Milliseconds since 1970; order is the record's place alone. */
    at: z.number().int(),
    /** The candidate that was looked at. */
    subject: digest,
    /** The trial that it came from; null for one from outside the run. */
    trial: trialId.nullable(),
    /** Why the operator looked, in their words. */
    reason: z.string().trim().min(1).max(2000),
    operator: z.string().min(1).max(200),
    /** Environment by digest, so that the look says what was measured. */
    environment: digest,
    /** Head of the run's ledger at the look. */
    ledger: z.strictObject({ head: z.number().int().nonnegative(), chain: digest }),
    /** Aggregated metric values; null when the look failed. */
    values: z.record(z.string().min(1).max(200), z.number()).nullable(),
    /** Why there are no values; null when there are. */
    failure: z.string().min(1).max(4000).nullable(),
    attempts: z.array(heldoutAttempt).max(1000),
    host: z.strictObject({
      name: z.string().max(300),
      platform: z.string().max(100),
      cpu: z.string().max(300),
      cpus: z.number().int().positive(),
      memoryBytes: z.number().int().positive(),
    }),
  })
  .refine((one) => (one.values === null) !== (one.failure === null), { message: "a look has either values or a failure" });
export type Look = z.infer<typeof look>;

/** A look with its place in the sealed ledger. */
export interface StoredLook {
  readonly sequence: number;
  readonly chain: Digest;
  readonly look: Look;
}

/** The record of every look at held-out data, with a hash chain of its own. */
export interface SealedLedger {
  /** Number of looks recorded. */
  readonly count: number;
  /** Records a look, durable on return: do it before the values are shown to anyone. @throws LedgerFullError, ZodError */
  append(look: Look): StoredLook;
  /** All looks in order, each checked. @throws LedgerCorruptError */
  looks(): readonly StoredLook[];
  /** Recomputes the whole chain; the first bad record, or null. */
  verify(): { readonly looks: number; readonly firstBad: LedgerCorruptError | null };
  close(): void;
}

const lookType = "heldout.looked";
const lookVersion = 1;

const sealedMigrations: readonly Migration[] = [
  {
    version: 1,
    name: "looks",
    sql: `
      CREATE TABLE events (
        sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, type TEXT NOT NULL, version INTEGER NOT NULL,
        data TEXT NOT NULL, chain TEXT NOT NULL
      ) STRICT;
      CREATE TABLE head (
        id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL, sequence INTEGER NOT NULL, chain TEXT NOT NULL
      ) STRICT;
      INSERT INTO head VALUES (1, 0, 0, '${emptyChain}');
    `,
  },
];

/**
 * Opens the sealed ledger of a run, made on the first use. Only operator commands import this module: the process of a run
 * never does, so that nothing it decides can depend on held-out results. One file without companions (rollback journal),
 * readable by its user alone.
 * @throws LedgerUnavailableError, LedgerSchemaError, LedgerCorruptError
 */
export function openSealed(runFolder: string): SealedLedger {
  const path = sealedPath(runFolder);
  return withTypedFailures(path, () => {
    makeDurableFolder(runFolder);
    const fresh = !existsSync(path);
    const db = new SqliteDatabase(path, { timeout: 5000 });
    try {
      if (fresh) chmodSync(path, 0o600);
      db.pragma("journal_mode = DELETE");
      db.pragma("synchronous = EXTRA");
      migrate(db, sealedMigrations, path);
      return new SqliteSealedLedger(db, path);
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

/** Opens the sealed ledger of a run for reading; null when nobody has looked yet. */
export function readSealed(runFolder: string): SealedLedger | null {
  const path = sealedPath(runFolder);
  if (!existsSync(path)) return null;
  return withTypedFailures(path, () => {
    const db = new SqliteDatabase(path, { readonly: true, timeout: 5000 });
    try {
      requireSchema(db, sealedMigrations, path);
      return new SqliteSealedLedger(db, path);
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

class SqliteSealedLedger implements SealedLedger {
  readonly #events: EventTable;

  constructor(
    private readonly db: Database,
    private readonly path: string,
  ) {
    this.#events = new EventTable(db, path);
  }

  get count(): number {
    return withTypedFailures(this.path, () => this.#events.head().sequence);
  }

  append(given: Look): StoredLook {
    const checked = look.parse(given);
    if (this.db.readonly)
      throw new LedgerUnavailableError({
        expected: "a sealed ledger opened for writing",
        found: "one opened for reading",
        where: this.path,
      });
    const write = this.db.transaction(() => {
      this.#events.requireWholeTail();
      const head = this.#events.head();
      const record = recordAfter(head.sequence, head.chain, checked);
      this.db
        .prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)")
        .run(record.sequence, record.at, record.type, record.version, record.data, record.chain);
      this.db.prepare("UPDATE head SET sequence = ?, chain = ?").run(record.sequence, record.chain);
      return record;
    });
    const record = withTypedFailures(this.path, () => write.immediate());
    return { sequence: record.sequence, chain: record.chain, look: checked };
  }

  looks(): readonly StoredLook[] {
    return withTypedFailures(this.path, () => [...this.#events.checked(0)].map((record) => storedLook(record, this.path)));
  }

  verify(): { readonly looks: number; readonly firstBad: LedgerCorruptError | null } {
    let looks = 0;
    try {
      withTypedFailures(this.path, () => {
        for (const record of this.#events.checked(0)) {
          storedLook(record, this.path);
          looks++;
        }
      });
      return { looks, firstBad: null };
    } catch (error) {
      if (error instanceof LedgerCorruptError) return { looks, firstBad: error };
      throw error;
    }
  }

  close(): void {
    this.db.close();
  }
}

function recordAfter(sequence: number, chain: Digest, one: Look): EventRecord {
  const unchained = { sequence: sequence + 1, at: one.at, type: lookType, version: lookVersion, data: canonicalJson(one) };
  return { ...unchained, chain: chainAfter(chain, unchained) };
}

function storedLook(record: EventRecord, path: string): StoredLook {
  const parsed = record.type === lookType && record.version === lookVersion ? look.safeParse(JSON.parse(record.data)) : null;
  if (parsed?.success === true) return { sequence: record.sequence, chain: record.chain, look: parsed.data };
  const found = `${record.type}, version ${record.version}${parsed === null ? "" : ", of another shape"}`;
  throw new LedgerCorruptError(record.sequence, "unreadable", { expected: `${lookType}, version ${lookVersion}`, found, where: path });
}
