import type { Checkpoint, Ledger, NewBlob, NewEvent, StoredEvent } from "../../core/ports/ledger.js";
import {
  BlobCorruptError,
  BlobMissingError,
  LedgerNotWritableError,
  StaleOwnerError,
  VersionConflictError,
} from "../../core/ports/ledger-errors.js";
import { type Digest, digestOf } from "../../core/protocol/canonical.js";
import { brokenRecord } from "./corrupt-record.js";
import { chainAfter, type EventRecord, emptyChain, eventOf, recordsOf } from "./event-record.js";
import { type Listener, Subscribers } from "./subscribers.js";

const where = "the ledger in memory";
const keptCheckpoints = 2;

/** What stays when a ledger in memory is closed, as a file would: open it again to go on. */
export class MemoryStore {
  epoch = 0;
  readonly records: EventRecord[] = [];
  readonly blobs = new Map<Digest, Uint8Array>();
  checkpoints: Checkpoint[] = [];
  heartbeat: number | null = null;
}

/** A ledger that behaves as the one in SQLite does and forgets with the process. For tests. Opening a store again makes earlier handles stale. */
export function openMemoryLedger(store: MemoryStore = new MemoryStore()): Ledger {
  return new MemoryLedger(store);
}

class MemoryLedger implements Ledger {
  readonly #subscribers = new Subscribers();
  readonly #pending = new Map<Digest, Uint8Array>();
  readonly #epoch: number;
  #open = true;

  constructor(private readonly store: MemoryStore) {
    store.epoch++;
    this.#epoch = store.epoch;
  }

  get head(): number {
    return this.store.records.length;
  }

  get chain(): Digest {
    return this.store.records.at(-1)?.chain ?? emptyChain;
  }

  append(expectedHead: number, at: number, events: readonly NewEvent[], blobs: readonly NewBlob[] = []): readonly StoredEvent[] {
    this.#requireOpen();
    this.#requireEpoch();
    if (expectedHead !== this.head) throw new VersionConflictError(expectedHead, this.head, where);
    const records = recordsOf(expectedHead, this.chain, at, events);
    for (const blob of blobs) this.#putNamed(blob);
    if (records.length === 0) return [];
    for (const [digest, bytes] of this.#pending) this.store.blobs.set(digest, bytes);
    this.#pending.clear();
    this.store.records.push(...records);
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
    const head = this.head;
    let previous = this.store.records[after - 1]?.chain ?? emptyChain;
    for (let index = after; index < head; index++) {
      const record = this.#record(index + 1);
      if (record === null) return;
      if (chainAfter(previous, record) !== record.chain) throw brokenRecord(previous, record, this.#source());
      previous = record.chain;
      yield eventOf(record);
    }
  }

  blob(digest: Digest): Uint8Array {
    this.#requireOpen();
    const bytes = this.#pending.get(digest) ?? this.store.blobs.get(digest);
    if (bytes === undefined) throw new BlobMissingError(digest, where);
    const actual = digestOf(bytes);
    if (actual !== digest) throw new BlobCorruptError(digest, actual, where);
    return bytes.slice();
  }

  hasBlob(digest: Digest): boolean {
    this.#requireOpen();
    return this.#pending.has(digest) || this.store.blobs.has(digest);
  }

  putBlob(bytes: Uint8Array): Digest {
    this.#requireOpen();
    const digest = digestOf(bytes);
    if (!this.hasBlob(digest)) this.#pending.set(digest, bytes.slice());
    return digest;
  }

  saveCheckpoint(checkpoint: Checkpoint): void {
    this.#requireOpen();
    this.#requireEpoch();
    this.store.checkpoints = [...this.store.checkpoints, checkpoint].slice(-keptCheckpoints);
  }

  loadCheckpoint(foldVersion: string): Checkpoint | null {
    this.#requireOpen();
    const usable = this.store.checkpoints.filter(
      (one) => one.foldVersion === foldVersion && this.#record(one.sequence)?.chain === one.chain,
    );
    return usable.reduce<Checkpoint | null>((latest, one) => (latest === null || one.sequence >= latest.sequence ? one : latest), null);
  }

  lastHeartbeat(): { readonly at: number } | null {
    this.#requireOpen();
    return this.store.heartbeat === null ? null : { at: this.store.heartbeat };
  }

  heartbeat(at: number): void {
    this.#requireOpen();
    this.#requireEpoch();
    this.store.heartbeat = at;
  }

  subscribe(listener: Listener): () => void {
    this.#requireOpen();
    return this.#subscribers.add(listener);
  }

  close(): void {
    this.#open = false;
    this.#subscribers.clear();
  }

  #putNamed({ digest, bytes }: NewBlob): void {
    const actual = digestOf(bytes);
    if (actual !== digest) throw new BlobCorruptError(digest, actual, "a blob given to append");
    this.putBlob(bytes);
  }

  #record(sequence: number): EventRecord | null {
    return this.store.records[sequence - 1] ?? null;
  }

  #source() {
    return { where, record: (sequence: number) => this.#record(sequence), records: () => this.store.records, headChain: () => this.chain };
  }

  #requireEpoch(): void {
    if (this.#epoch !== this.store.epoch) throw new StaleOwnerError(this.#epoch, this.store.epoch, where);
  }

  #requireOpen(): void {
    if (this.#open) return;
    throw new LedgerNotWritableError({ expected: "an open ledger", found: "one that was closed", where, todo: "Open it again." });
  }
}
