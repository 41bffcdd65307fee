import type { Digest } from "../protocol/canonical.js";

/** An event as the core makes it: without a place in the stream. `data` is JSON. */
export interface NewEvent {
  readonly type: string;
  /** Version of this event type's shape; older ones are upcast on read. */
  readonly version: number;
  readonly data: unknown;
}

/** An event with its place. `at` is information for people: order is `sequence` alone, clocks may go back. */
export interface StoredEvent extends NewEvent {
  /** 1, 2, 3 … without gaps. */
  readonly sequence: number;
  /** Milliseconds since 1970, from the command that caused it. */
  readonly at: number;
}

export interface NewBlob {
  readonly digest: Digest;
  readonly bytes: Uint8Array;
}

/** The fold of a prefix of the ledger, thrown away at any time. */
export interface Checkpoint {
  readonly sequence: number;
  /** Chain value at `sequence`; a checkpoint whose chain differs from the ledger's is ignored. */
  readonly chain: Digest;
  /** Names the fold's code; a checkpoint of another fold is ignored. */
  readonly foldVersion: string;
  readonly state: string;
}

/**
 * One run's append-only event stream with its blobs. Synchronous: what returned is durable (WAL, synchronous FULL).
 * Implementations: SQLite, in-memory (tests). One behaviour suite runs against both.
 */
export interface Ledger {
  /** Sequence of the last event, 0 when empty. */
  readonly head: number;
  /** Chain value of the last event: SHA-256 over the previous chain value and the canonical event. 64 zeros when empty. */
  readonly chain: Digest;
  /**
   * Appends all or nothing, in one transaction with the blobs that the events name.
   * @throws VersionConflictError when `expectedHead` is not the head
   * @throws StaleOwnerError when a later owner has taken the run
   */
  append(expectedHead: number, at: number, events: readonly NewEvent[], blobs?: readonly NewBlob[]): readonly StoredEvent[];
  /** Events with `sequence > after`, in order, each checked against the chain. @throws LedgerCorruptError naming the first bad record */
  read(after?: number): IterableIterator<StoredEvent>;
  /** @throws BlobMissingError, BlobCorruptError */
  blob(digest: Digest): Uint8Array;
  hasBlob(digest: Digest): boolean;
  /** Stores bytes before an event names them: up to 64 KiB waits for that event's transaction, larger goes to a file, fsynced. Returns the digest. */
  putBlob(bytes: Uint8Array): Digest;
  saveCheckpoint(checkpoint: Checkpoint): void;
  loadCheckpoint(foldVersion: string): Checkpoint | null;
  /** The latest heartbeat that an owner left, for active time after a crash; null before the first. */
  lastHeartbeat(): { readonly at: number } | null;
  heartbeat(at: number): void;
  /** Called after every append by this process or (SQLite) by another one. Returns how to stop. */
  subscribe(listener: (events: readonly StoredEvent[]) => void): () => void;
  close(): void;
}
