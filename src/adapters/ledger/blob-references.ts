import SqliteDatabase, { type Database, type Statement } from "better-sqlite3";
import { BlobMissingError } from "../../core/ports/ledger-errors.js";
import { readManifest } from "../../core/protocol/candidate.js";
import type { Digest } from "../../core/protocol/canonical.js";
import { isDigest } from "./blob-files.js";
import type { BlobStore } from "./blob-store.js";

/** A blob that a record names. */
export interface Reference {
  readonly digest: Digest;
  readonly bytes: number;
  /** The blob is a candidate's manifest: the files that it lists are blobs too. */
  readonly manifest: boolean;
}

/** Type of the event that says which blobs were removed on purpose: its data holds `digests`. */
export const prunedEventType = "run.blobs_pruned";

/** Every blob that canonical JSON names: the objects with a digest under `blob` and a size under `bytes`. */
export function referencesIn(canonical: string): Reference[] {
  if (!canonical.includes('"blob":"')) return [];
  const found: Reference[] = [];
  collect(JSON.parse(canonical), found);
  return found;
}

/** Blobs that a `run.blobs_pruned` event lists. */
export function prunedIn(canonical: string): Digest[] {
  const data: unknown = JSON.parse(canonical);
  if (typeof data !== "object" || data === null || !("digests" in data) || !Array.isArray(data.digests)) return [];
  return data.digests.filter(isDigest);
}

/** Files of a candidate's manifest as references; null when the bytes are no manifest. */
export function filesOfManifest(bytes: Uint8Array): Reference[] | null {
  try {
    const { files } = readManifest(bytes);
    return files.map((file) => ({ digest: file.digest, bytes: file.bytes, manifest: false }));
  } catch {
    return null;
  }
}

function collect(value: unknown, found: Reference[]): void {
  if (typeof value !== "object" || value === null) return;
  if ("blob" in value && "bytes" in value && isDigest(value.blob) && typeof value.bytes === "number") {
    found.push({ digest: value.blob, bytes: value.bytes, manifest: "manifest" in value && value.manifest === true });
  }
  for (const member of Object.values(value)) collect(member, found);
}

/** A reference with the event that made it first. */
export interface NamedReference extends Reference {
  readonly sequence: number;
}

type Row = { rowid: number; digest: string; bytes: number; manifest: number; sequence: number };

/**
 * The distinct references of a ledger in the order of their first naming, with what was pruned. Kept in a private
 * temporary database, so that memory stays flat however many there are.
 */
export class ReferenceIndex {
  readonly #db: Database = new SqliteDatabase("");
  readonly #add: Statement<[string, number, number, number]>;
  readonly #prune: Statement<[string]>;
  readonly #unprune: Statement<[string]>;
  #hasPruned = false;
  readonly #next: Statement<[number], Row>;
  readonly #isPruned: Statement<[string], number>;
  readonly #isNamed: Statement<[string], number>;
  readonly #manifest: Statement<[string], number>;

  constructor() {
    this.#db.pragma("journal_mode = OFF");
    this.#db.pragma("synchronous = OFF");
    this.#db.exec(`
      CREATE TABLE named (digest TEXT, bytes INTEGER, manifest INTEGER, sequence INTEGER, UNIQUE (digest, bytes, manifest));
      CREATE TABLE pruned (digest TEXT PRIMARY KEY) WITHOUT ROWID;
    `);
    this.#add = this.#db.prepare("INSERT OR IGNORE INTO named VALUES (?, ?, ?, ?)");
    this.#prune = this.#db.prepare("INSERT OR IGNORE INTO pruned VALUES (?)");
    this.#unprune = this.#db.prepare("DELETE FROM pruned WHERE digest = ?");
    this.#next = this.#db.prepare("SELECT rowid, * FROM named WHERE rowid > ? ORDER BY rowid LIMIT 1");
    this.#isPruned = this.#db.prepare<[string], number>("SELECT 1 FROM pruned WHERE digest = ?").pluck();
    this.#isNamed = this.#db.prepare<[string], number>("SELECT 1 FROM named WHERE digest = ?").pluck();
    this.#manifest = this.#db
      .prepare<[string], number>("SELECT sequence FROM named WHERE digest = ? AND manifest = 1 ORDER BY rowid LIMIT 1")
      .pluck();
  }

  /** Takes in what one record names and prunes. */
  addRecord(record: { readonly sequence: number; readonly type: string; readonly data: string }): void {
    for (const reference of referencesIn(record.data)) {
      this.add(reference, record.sequence);
      // Named again after it was pruned: then it has to be there.
      if (this.#hasPruned) this.#unprune.run(reference.digest);
    }
    if (record.type !== prunedEventType) return;
    this.#hasPruned = true;
    for (const digest of prunedIn(record.data)) this.#prune.run(digest);
  }

  add(reference: Reference, sequence: number): void {
    this.#add.run(reference.digest, reference.bytes, reference.manifest ? 1 : 0, sequence);
  }

  isPruned(digest: Digest): boolean {
    return this.#isPruned.get(digest) !== undefined;
  }

  isNamed(digest: Digest): boolean {
    return this.#isNamed.get(digest) !== undefined;
  }

  /** The first event that names a digest as a manifest; null when none does. */
  manifestNamedBy(digest: Digest): number | null {
    return this.#manifest.get(digest) ?? null;
  }

  /** All references; those that are added while walking are walked too. */
  *all(): Generator<NamedReference> {
    for (let row = this.#next.get(0); row !== undefined; row = this.#next.get(row.rowid)) {
      yield { digest: row.digest, bytes: row.bytes, manifest: row.manifest === 1, sequence: row.sequence };
    }
  }

  close(): void {
    this.#db.close();
  }
}

/** A blob's bytes; null where they are gone and an event says that they were removed. @throws BlobMissingError, BlobCorruptError */
export function readUnlessPruned(store: BlobStore, index: ReferenceIndex, digest: Digest): Uint8Array | null {
  try {
    return store.get(digest);
  } catch (error) {
    if (error instanceof BlobMissingError && index.isPruned(digest)) return null;
    throw error;
  }
}
