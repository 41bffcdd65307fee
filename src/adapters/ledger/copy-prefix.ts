import type { Database } from "better-sqlite3";
import { LedgerUnavailableError } from "../../core/ports/ledger-errors.js";
import type { Digest } from "../../core/protocol/canonical.js";
import { BlobFiles } from "./blob-files.js";
import { filesOfManifest, ReferenceIndex, readUnlessPruned } from "./blob-references.js";
import { BlobStore } from "./blob-store.js";
import { createDatabase, openForReading } from "./database.js";
import { emptyChain } from "./event-record.js";
import { EventTable } from "./event-table.js";
import { ledgerPath, maxInlineBlobBytes } from "./run-files.js";
import { typedFailure } from "./sqlite-failures.js";

export interface CopyOptions {
  /** Shared by both runs: large blobs are not copied. */
  readonly blobFolder: string;
  /** Sequence of the last event that is taken. */
  readonly until: number;
}

export interface CopyReport {
  readonly chain: Digest;
  /** Named blobs that are missing because an event after the last one that was taken says so. */
  readonly gone: readonly Digest[];
}

/**
 * Makes a new ledger whose events are another's first ones, record by record, with the blobs that they name. Reads the
 * other one beside its owner; every record and blob is checked on the way. A failure leaves the new folder behind, for
 * whoever asked to remove.
 * @throws LedgerCorruptError, BlobMissingError, BlobCorruptError, LedgerFullError, LedgerUnavailableError
 */
export function copyPrefix(sourceFolder: string, targetFolder: string, options: CopyOptions): CopyReport {
  const path = ledgerPath(sourceFolder);
  const index = new ReferenceIndex();
  const later = new ReferenceIndex();
  const source = openForReading(sourceFolder);
  let target: Database | null = null;
  try {
    target = createDatabase(targetFolder);
    target.exec("BEGIN");
    const chain = copyEvents(new EventTable(source, path), target, { index, later }, options.until);
    const gone = copyBlobs(new BlobStore(source, new BlobFiles(options.blobFolder), path), target, { index, later });
    target.prepare("UPDATE head SET sequence = ?, chain = ?").run(options.until, chain);
    target.exec("COMMIT");
    return { chain, gone };
  } catch (error) {
    throw typedFailure(error, targetFolder);
  } finally {
    index.close();
    later.close();
    source.close();
    target?.close();
  }
}

/** What the copied events name and prune, and what the ones after them do. */
interface References {
  readonly index: ReferenceIndex;
  readonly later: ReferenceIndex;
}

function copyEvents(table: EventTable, target: Database, { index, later }: References, until: number): Digest {
  const insert = target.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)");
  let last: { readonly sequence: number; readonly chain: Digest } = { sequence: 0, chain: emptyChain };
  for (const record of table.checked(0)) {
    if (record.sequence > until) {
      later.addRecord(record);
      continue;
    }
    insert.run(record.sequence, record.at, record.type, record.version, record.data, record.chain);
    index.addRecord(record);
    last = record;
  }
  if (last.sequence === until) return last.chain;
  throw new LedgerUnavailableError({ expected: `${until} events to copy`, found: String(last.sequence), where: table.where });
}

function copyBlobs(store: BlobStore, target: Database, { index, later }: References): Digest[] {
  const insert = target.prepare("INSERT INTO blobs VALUES (?, ?) ON CONFLICT DO NOTHING");
  const gone = new Set<Digest>();
  for (const { digest, manifest, sequence } of index.all()) {
    const bytes = readUnlessPruned(store, later.isPruned(digest) ? later : index, digest);
    if (bytes === null && !index.isPruned(digest)) gone.add(digest);
    if (bytes === null) continue;
    if (bytes.byteLength <= maxInlineBlobBytes) insert.run(digest, bytes);
    if (manifest) for (const file of filesOfManifest(bytes) ?? []) index.add(file, sequence);
  }
  return [...gone];
}
