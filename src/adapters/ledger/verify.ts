import { setImmediate as turn } from "node:timers/promises";
import type { Database } from "better-sqlite3";
import type { StoredEvent } from "../../core/ports/ledger.js";
import { BlobCorruptError, BlobMissingError, type Difference, LedgerCorruptError } from "../../core/ports/ledger-errors.js";
import type { Digest } from "../../core/protocol/canonical.js";
import { TrialistError } from "../../core/protocol/errors.js";
import { BlobFiles } from "./blob-files.js";
import { filesOfManifest, type NamedReference, ReferenceIndex } from "./blob-references.js";
import { BlobStore } from "./blob-store.js";
import { openForReading } from "./database.js";
import { emptyChain, eventOf } from "./event-record.js";
import { EventTable } from "./event-table.js";
import { ledgerPath } from "./run-files.js";
import { typedFailure } from "./sqlite-failures.js";

export interface VerifyOptions {
  readonly blobFolder: string;
  /**
   * Called with every event whose chain holds. Returns what is wrong with it (a type or version that nobody knows, a shape
   * that does not parse), or null. What it throws counts as wrong too. `before`: the chain value of the event before it.
   */
  readonly checkEvent?: (event: StoredEvent, before: Digest) => string | null;
}

export type ProblemKind = Difference | "event-refused" | "blob-missing" | "blob-corrupt" | "blob-size" | "manifest-invalid";

/** One bad record. */
export interface Problem {
  readonly kind: ProblemKind;
  /** The bad event, or the first event that names the bad blob; null when not even rows can be read. */
  readonly sequence: number | null;
  readonly digest: Digest | null;
  readonly message: string;
}

export interface VerifyReport {
  readonly ok: boolean;
  /** Events whose chain holds, from the first on. */
  readonly events: number;
  readonly head: number;
  readonly chain: Digest;
  readonly blobs: { readonly checked: number; readonly bytes: number; readonly pruned: number };
  /** The first one found; null when all is well. Events come before blobs, each in the ledger's order. */
  readonly firstBad: Problem | null;
  /** At most 100, the first ones. */
  readonly problems: readonly Problem[];
  readonly problemCount: number;
}

const keptProblems = 100;
const eventsPerTurn = 500;

/**
 * Recomputes a run's whole ledger: pages of the file, chain, events (by the caller's check), and every blob that an event or
 * a candidate's manifest names. Reads only, beside a living owner too. Gaps are accepted when a `run.blobs_pruned` event lists
 * them. Like every unkeyed chain it cannot see a ledger rewritten as a whole: compare `chain` with one noted elsewhere.
 * @throws LedgerUnavailableError, LedgerSchemaError when there is nothing to verify
 */
export async function verifyLedger(runFolder: string, options: VerifyOptions): Promise<VerifyReport> {
  const path = ledgerPath(runFolder);
  let db: Database;
  try {
    db = openForReading(runFolder);
  } catch (error) {
    if (error instanceof LedgerCorruptError) return unreadable(error);
    throw error;
  }
  const index = new ReferenceIndex();
  try {
    return await new Verification(db, path, options, index).run();
  } catch (error) {
    const typed = typedFailure(error, path);
    if (typed instanceof LedgerCorruptError) return unreadable(typed);
    throw typed;
  } finally {
    index.close();
    db.close();
  }
}

function unreadable(error: LedgerCorruptError): VerifyReport {
  const problem: Problem = { kind: error.difference, sequence: error.sequence, digest: null, message: error.message };
  return {
    ok: false,
    events: 0,
    head: 0,
    chain: "",
    blobs: { checked: 0, bytes: 0, pruned: 0 },
    firstBad: problem,
    problems: [problem],
    problemCount: 1,
  };
}

class Verification {
  readonly #problems: Problem[] = [];
  readonly #table: EventTable;
  readonly #blobs: BlobStore;
  #problemCount = 0;
  #events = 0;
  #checked = 0;
  #bytes = 0;
  #pruned = 0;

  constructor(
    private readonly db: Database,
    private readonly path: string,
    private readonly options: VerifyOptions,
    private readonly index: ReferenceIndex,
  ) {
    this.#table = new EventTable(db, path);
    this.#blobs = new BlobStore(db, new BlobFiles(options.blobFolder), path);
  }

  async run(): Promise<VerifyReport> {
    const { sequence, chain } = this.#table.head();
    await this.#checkEvents(sequence);
    this.#checkPages();
    for (const reference of this.index.all()) {
      this.#checkBlob(reference);
      await turn();
    }
    const blobs = { checked: this.#checked, bytes: this.#bytes, pruned: this.#pruned };
    const shared = { events: this.#events, head: sequence, chain, blobs };
    return {
      ok: this.#problemCount === 0,
      ...shared,
      firstBad: this.#problems[0] ?? null,
      problems: this.#problems,
      problemCount: this.#problemCount,
    };
  }

  async #checkEvents(head: number): Promise<void> {
    let before = emptyChain;
    try {
      for (const record of this.#table.checked(0)) {
        if (record.sequence > head) return;
        this.#events++;
        this.index.addRecord(record);
        if (this.options.checkEvent !== undefined) this.#checkEvent(eventOf(record), before, this.options.checkEvent);
        before = record.chain;
        if (this.#events % eventsPerTurn === 0) await turn();
      }
    } catch (error) {
      const typed = typedFailure(error, this.path);
      if (!(typed instanceof LedgerCorruptError)) throw typed;
      this.#report({ kind: typed.difference, sequence: typed.sequence ?? this.#events + 1, digest: null, message: typed.message });
    }
  }

  #checkEvent(event: StoredEvent, before: Digest, check: (event: StoredEvent, before: Digest) => string | null): void {
    let wrong: string | null;
    try {
      wrong = check(event, before);
    } catch (error) {
      wrong = error instanceof Error ? error.message : String(error);
    }
    if (wrong === null) return;
    const message = `${this.path}: event ${event.sequence} (${event.type}, version ${event.version}): ${wrong}`;
    this.#report({ kind: "event-refused", sequence: event.sequence, digest: null, message });
  }

  /** Damage that reading the events did not touch: free pages, indexes, the blobs' table. */
  #checkPages(): void {
    const found = this.db.pragma("integrity_check(1)", { simple: true });
    if (found === "ok") return;
    this.#report({
      kind: "unreadable",
      sequence: null,
      digest: null,
      message: `${this.path}: expected a sound SQLite file; found: ${String(found)}`,
    });
  }

  #checkBlob(reference: NamedReference): void {
    try {
      const bytes = this.#blobs.get(reference.digest);
      this.#checked++;
      this.#bytes += bytes.byteLength;
      if (bytes.byteLength !== reference.bytes)
        this.#reportBlob("blob-size", reference, `expected ${reference.bytes} bytes; found ${bytes.byteLength}`);
      if (reference.manifest) this.#checkManifest(reference, bytes);
    } catch (error) {
      if (error instanceof BlobMissingError && this.index.isPruned(reference.digest)) this.#pruned++;
      else if (error instanceof BlobMissingError) this.#reportBlob("blob-missing", reference, error.message);
      else if (error instanceof BlobCorruptError) this.#reportBlob("blob-corrupt", reference, error.message);
      else if (error instanceof TrialistError) this.#reportBlob("blob-missing", reference, error.message);
      else throw error;
    }
  }

  #checkManifest(reference: NamedReference, bytes: Uint8Array): void {
    const files = filesOfManifest(bytes);
    if (files === null) return this.#reportBlob("manifest-invalid", reference, "expected a candidate's manifest; found something else");
    for (const file of files) this.index.add(file, reference.sequence);
  }

  #reportBlob(kind: ProblemKind, { digest, sequence }: NamedReference, text: string): void {
    this.#report({ kind, sequence, digest, message: `blob ${digest}, first named by event ${sequence}: ${text}` });
  }

  #report(problem: Problem): void {
    this.#problemCount++;
    if (this.#problems.length < keptProblems) this.#problems.push(problem);
  }
}
