import type { Database, Statement } from "better-sqlite3";
import type { NewBlob } from "../../core/ports/ledger.js";
import { BlobCorruptError, BlobMissingError } from "../../core/ports/ledger-errors.js";
import { type Digest, digestOf } from "../../core/protocol/canonical.js";
import { type BlobFiles, isDigest } from "./blob-files.js";
import { maxInlineBlobBytes } from "./run-files.js";

/**
 * The blobs of one ledger: small ones in its `blobs` table, large ones as shared files, and small ones that still wait
 * for the next append's transaction.
 */
export class BlobStore {
  readonly #pending = new Map<Digest, Uint8Array>();
  readonly #select: Statement<[string], Buffer>;
  readonly #known: Statement<[string], number>;
  #insert: Statement<[string, Uint8Array]> | null = null;

  constructor(
    private readonly db: Database,
    readonly files: BlobFiles,
    private readonly where: string,
  ) {
    this.#select = db.prepare<[string], Buffer>("SELECT bytes FROM blobs WHERE digest = ?").pluck();
    this.#known = db.prepare<[string], number>("SELECT 1 FROM blobs WHERE digest = ?").pluck();
  }

  /** Takes a blob in: small ones wait, large ones are durable on return. */
  put(digest: Digest, bytes: Uint8Array): void {
    if (bytes.byteLength > maxInlineBlobBytes) this.files.write(digest, bytes);
    // Whether it is stored already is for the insert to find out: looking twice would cost every new blob a query.
    else if (!this.#pending.has(digest)) this.#pending.set(digest, bytes.slice());
  }

  /** Takes in blobs that came with an append, after checking their names. @throws BlobCorruptError */
  putNamed(blobs: readonly NewBlob[]): void {
    for (const { digest, bytes } of blobs) {
      const actual = digestOf(bytes);
      if (actual !== digest) throw new BlobCorruptError(digest, actual, "a blob given to append");
      this.put(digest, bytes);
    }
  }

  /** Writes all that wait. Call inside the append's transaction, and `settle` after its commit. */
  writePending(): void {
    if (this.#pending.size === 0) return;
    this.#insert ??= this.db.prepare("INSERT INTO blobs VALUES (?, ?) ON CONFLICT DO NOTHING");
    for (const [digest, bytes] of this.#pending) this.#insert.run(digest, bytes);
  }

  settle(): void {
    if (this.#pending.size > 0) this.#pending.clear();
  }

  has(digest: Digest): boolean {
    if (!isDigest(digest)) return false;
    return this.#pending.has(digest) || this.#known.get(digest) !== undefined || this.files.has(digest);
  }

  /** @throws BlobMissingError, BlobCorruptError */
  get(digest: Digest): Uint8Array {
    if (!isDigest(digest)) throw new BlobMissingError(String(digest).slice(0, 100), this.where);
    const waiting = this.#pending.get(digest);
    if (waiting !== undefined) return waiting.slice();
    const inline = this.#select.get(digest);
    if (inline === undefined) return this.files.read(digest);
    const actual = digestOf(inline);
    if (actual !== digest) throw new BlobCorruptError(digest, actual, this.where);
    return inline;
  }
}
