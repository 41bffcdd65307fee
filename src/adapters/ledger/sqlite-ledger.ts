import { resolve } from "node:path";
import type { Database, Statement } from "better-sqlite3";
import type { Checkpoint, Ledger, NewBlob, NewEvent, StoredEvent } from "../../core/ports/ledger.js";
import { LedgerNotWritableError, StaleOwnerError, VersionConflictError } from "../../core/ports/ledger-errors.js";
import { type Digest, digestOf } from "../../core/protocol/canonical.js";
import { BlobFiles } from "./blob-files.js";
import { BlobStore } from "./blob-store.js";
import { CheckpointTable } from "./checkpoint-table.js";
import { createDatabase, openForReading, openForWriting } from "./database.js";
import { type EventRecord, recordsOf } from "./event-record.js";
import { EventTable } from "./event-table.js";
import { acquireOwner, type Ownership } from "./owner.js";
import { ledgerPath } from "./run-files.js";
import { typedFailure, withTypedFailures } from "./sqlite-failures.js";
import { type Listener, Subscribers } from "./subscribers.js";

export interface SqliteLedgerOptions {
  /** `create`: a new ledger, refused where one is. `own`: an existing one, for appending. `read`: beside an owner or without one. */
  readonly mode: "create" | "own" | "read";
  /** Folder of large blobs, shared by the runs of a project. */
  readonly blobFolder: string;
  /** The run's ownership. Absent in `create` and `own`: taken now and released by `close`. */
  readonly owner?: Ownership;
  /** Hears why a reader's subscription ended (a corrupt record, a vanished disk). Absent: the error is thrown, uncaught. */
  readonly onSubscriptionError?: (error: unknown) => void;
}

const pollMs = 200;
const mostEventsAtOnce = 256;

/** Opens or makes the ledger of a run. @throws RunOwnedError, LedgerUnavailableError, LedgerSchemaError, LedgerCorruptError */
export function openSqliteLedger(runFolder: string, options: SqliteLedgerOptions): Ledger {
  if (options.mode === "read") return SqliteLedger.over(openForReading(runFolder), runFolder, options, null, null);
  const acquired = options.owner === undefined ? acquireOwner(runFolder) : null;
  try {
    const owner = acquired ?? requireHeld(options.owner, runFolder);
    const db = options.mode === "create" ? createDatabase(runFolder) : openForWriting(runFolder);
    return SqliteLedger.over(db, runFolder, options, owner, acquired);
  } catch (error) {
    acquired?.release();
    throw error;
  }
}

function requireHeld(owner: Ownership | undefined, runFolder: string): Ownership {
  if (owner?.held === true && resolve(owner.runFolder) === resolve(runFolder)) return owner;
  const facts = {
    expected: "a held ownership of this run",
    found: "a released one, or another run's",
    where: runFolder,
    todo: "Acquire the run again.",
  };
  throw new LedgerNotWritableError(facts);
}

/** What an owner writes with; a reader has none. */
interface Writer {
  readonly owner: Ownership;
  readonly epoch: number;
  readonly begin: Statement<[]>;
  readonly commit: Statement<[]>;
  readonly rollback: Statement<[]>;
  readonly moveHead: Statement<[number, string, number, number]>;
  readonly insert: Statement<[number, number, string, number, string, string]>;
  readonly beat: Statement<[number, number]>;
}

class SqliteLedger implements Ledger {
  readonly #events: EventTable;
  readonly #blobs: BlobStore;
  readonly #checkpoints: CheckpointTable;
  readonly #subscribers = new Subscribers();
  readonly #pollers = new Set<NodeJS.Timeout>();
  readonly #writer: Writer | null;
  #head: { readonly sequence: number; readonly chain: Digest } = { sequence: 0, chain: "" };

  private constructor(
    private readonly db: Database,
    private readonly path: string,
    private readonly options: SqliteLedgerOptions,
    owner: Ownership | null,
    private readonly toRelease: Ownership | null,
  ) {
    this.#events = new EventTable(db, path);
    this.#blobs = new BlobStore(db, new BlobFiles(options.blobFolder), path);
    this.#checkpoints = new CheckpointTable(db, this.#events);
    this.#events.requireWholeTail();
    this.#writer = owner === null ? null : writerOf(db, owner);
    this.#head = this.#events.head();
  }

  static over(
    db: Database,
    runFolder: string,
    options: SqliteLedgerOptions,
    owner: Ownership | null,
    toRelease: Ownership | null,
  ): SqliteLedger {
    const path = ledgerPath(runFolder);
    try {
      return withTypedFailures(path, () => new SqliteLedger(db, path, options, owner, toRelease));
    } catch (error) {
      db.close();
      throw error;
    }
  }

  get head(): number {
    return this.#currentHead().sequence;
  }

  get chain(): Digest {
    return this.#currentHead().chain;
  }

  append(expectedHead: number, at: number, events: readonly NewEvent[], blobs: readonly NewBlob[] = []): readonly StoredEvent[] {
    const writer = this.#requireWriter();
    if (expectedHead !== this.#head.sequence) throw new VersionConflictError(expectedHead, this.#head.sequence, this.path);
    const records = recordsOf(expectedHead, this.#head.chain, at, events);
    this.#blobs.putNamed(blobs);
    const last = records.at(-1);
    if (last === undefined) return [];
    this.#transact(writer, () => this.#write(writer, expectedHead, records, last));
    this.#blobs.settle();
    this.#head = { sequence: last.sequence, chain: last.chain };
    const stored = events.map((event, index) => ({
      sequence: expectedHead + index + 1,
      at,
      type: event.type,
      version: event.version,
      data: event.data,
    }));
    this.#subscribers.publish(stored);
    return stored;
  }

  *read(after = 0): IterableIterator<StoredEvent> {
    this.#requireOpen();
    try {
      yield* this.#events.read(after);
    } catch (error) {
      throw typedFailure(error, this.path);
    }
  }

  blob(digest: Digest): Uint8Array {
    this.#requireOpen();
    return withTypedFailures(this.path, () => this.#blobs.get(digest));
  }

  hasBlob(digest: Digest): boolean {
    this.#requireOpen();
    return this.#blobs.has(digest);
  }

  putBlob(bytes: Uint8Array): Digest {
    this.#requireWriter();
    const digest = digestOf(bytes);
    this.#blobs.put(digest, bytes);
    return digest;
  }

  saveCheckpoint(checkpoint: Checkpoint): void {
    const writer = this.#requireWriter();
    this.#relaxed(() =>
      this.#transact(writer, () => {
        this.#requireEpoch(writer);
        this.#checkpoints.save(checkpoint);
      }),
    );
  }

  loadCheckpoint(foldVersion: string): Checkpoint | null {
    this.#requireOpen();
    return withTypedFailures(this.path, () => this.#checkpoints.load(foldVersion));
  }

  lastHeartbeat(): { readonly at: number } | null {
    this.#requireOpen();
    const at = withTypedFailures(this.path, () => this.db.prepare<[], number>("SELECT at FROM heartbeat").pluck().get());
    return at === undefined ? null : { at };
  }

  heartbeat(at: number): void {
    const writer = this.#requireWriter();
    const beaten = this.#relaxed(() => withTypedFailures(this.path, () => writer.beat.run(at, writer.epoch).changes));
    if (beaten === 0) this.#requireEpoch(writer);
  }

  subscribe(listener: Listener): () => void {
    this.#requireOpen();
    return this.#writer === null ? this.#poll(listener) : this.#subscribers.add(listener);
  }

  close(): void {
    if (!this.db.open) return;
    for (const poller of this.#pollers) clearInterval(poller);
    this.#subscribers.clear();
    try {
      this.db.close();
    } finally {
      this.toRelease?.release();
    }
  }

  #write(writer: Writer, expectedHead: number, records: readonly EventRecord[], last: EventRecord): void {
    if (writer.moveHead.run(last.sequence, last.chain, writer.epoch, expectedHead).changes !== 1) {
      this.#requireEpoch(writer);
      this.#head = this.#events.head();
      throw new VersionConflictError(expectedHead, this.#head.sequence, this.path);
    }
    this.#blobs.writePending();
    for (const { sequence, at, type, version, data, chain } of records) writer.insert.run(sequence, at, type, version, data, chain);
  }

  #transact(writer: Writer, work: () => void): void {
    withTypedFailures(this.path, () => {
      writer.begin.run();
      try {
        work();
        writer.commit.run();
      } catch (error) {
        if (this.db.inTransaction) writer.rollback.run();
        throw error;
      }
    });
  }

  /** For what may be lost at a power failure: no fsync. The order of writes, and so the ledger, stays sound. */
  #relaxed<T>(work: () => T): T {
    this.db.pragma("synchronous = NORMAL");
    try {
      return work();
    } finally {
      this.db.pragma("synchronous = FULL");
    }
  }

  #currentHead(): { readonly sequence: number; readonly chain: Digest } {
    if (this.#writer !== null) return this.#head;
    this.#requireOpen();
    return withTypedFailures(this.path, () => this.#events.head());
  }

  #requireEpoch(writer: Writer): void {
    const { epoch } = this.#events.head();
    if (epoch !== writer.epoch) throw new StaleOwnerError(writer.epoch, epoch, this.path);
  }

  #requireOpen(): void {
    if (this.db.open) return;
    throw new LedgerNotWritableError({
      expected: "an open ledger",
      found: "one that was closed",
      where: this.path,
      todo: "Open it again.",
    });
  }

  #requireWriter(): Writer {
    this.#requireOpen();
    if (this.#writer === null) {
      const facts = {
        expected: "a ledger opened by the run's owner",
        found: "one opened for reading",
        where: this.path,
        todo: "Send the command to the owner.",
      };
      throw new LedgerNotWritableError(facts);
    }
    if (this.#writer.owner.held) return this.#writer;
    throw new LedgerNotWritableError({
      expected: "that the run is owned",
      found: "that it was released",
      where: this.path,
      todo: "Acquire and open it again.",
    });
  }

  /** Only an owner writes, so a reader looks whether another connection has changed the file: `data_version` costs microseconds. */
  #poll(listener: Listener): () => void {
    let seen = this.#dataVersion();
    let told = this.head;
    const poller = setInterval(() => {
      try {
        const version = this.#dataVersion();
        if (version === seen) return;
        for (const batch of batches(this.read(told))) {
          told = batch.at(-1)?.sequence ?? told;
          listener(batch);
          if (!this.#pollers.has(poller)) return;
        }
        seen = version;
      } catch (error) {
        stop();
        if (this.options.onSubscriptionError === undefined) throw error;
        this.options.onSubscriptionError(error);
      }
    }, pollMs);
    this.#pollers.add(poller);
    const stop = (): void => {
      clearInterval(poller);
      this.#pollers.delete(poller);
    };
    return stop;
  }

  #dataVersion(): unknown {
    return withTypedFailures(this.path, () => this.db.pragma("data_version", { simple: true }));
  }
}

function writerOf(db: Database, owner: Ownership): Writer {
  return {
    owner,
    epoch: owner.epochIn(db),
    begin: db.prepare("BEGIN IMMEDIATE"),
    commit: db.prepare("COMMIT"),
    rollback: db.prepare("ROLLBACK"),
    moveHead: db.prepare("UPDATE head SET sequence = ?, chain = ? WHERE id = 1 AND epoch = ? AND sequence = ?"),
    insert: db.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"),
    beat: db.prepare("INSERT INTO heartbeat SELECT 1, ? FROM head WHERE epoch = ? ON CONFLICT (id) DO UPDATE SET at = excluded.at"),
  };
}

function* batches(events: Iterable<StoredEvent>): Generator<readonly StoredEvent[]> {
  let batch: StoredEvent[] = [];
  for (const event of events) {
    batch.push(event);
    if (batch.length < mostEventsAtOnce) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
