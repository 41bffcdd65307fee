import { once } from "node:events";
import { createWriteStream, openSync, rmSync } from "node:fs";
import { basename, resolve } from "node:path";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { LedgerUnavailableError } from "../../core/ports/ledger-errors.js";
import type { Digest } from "../../core/protocol/canonical.js";
import { BlobFiles } from "./blob-files.js";
import { filesOfManifest, ReferenceIndex, readUnlessPruned } from "./blob-references.js";
import { BlobStore } from "./blob-store.js";
import { openForReading } from "./database.js";
import type { EventRecord } from "./event-record.js";
import { EventTable } from "./event-table.js";
import { ledgerPath } from "./run-files.js";
import { typedFailure } from "./sqlite-failures.js";
import { blobPartBytes, formatName, formatVersion, type HeaderLine } from "./transfer-format.js";

export interface ExportOptions {
  readonly blobFolder: string;
  /** Whether blobs are written too; default true. */
  readonly blobs?: boolean;
  /** Name of the run for the header; default the folder's name. */
  readonly run?: string;
}

export interface ExportReport {
  readonly events: number;
  readonly chain: Digest;
  readonly blobs: number;
  readonly bytes: number;
}

/**
 * Writes a run's ledger as JSON Lines: a header, the events up to the head of this moment, the blobs that they and their
 * manifests name, and a last line that proves the file whole. Reads only, beside a living owner too; every record is checked
 * on the way. Blobs that were pruned are left out. `target` is a stream, which is ended, or the path of a new file.
 * @throws LedgerCorruptError, BlobMissingError, BlobCorruptError, LedgerFullError
 */
export async function exportLedger(runFolder: string, target: Writable | string, options: ExportOptions): Promise<ExportReport> {
  const path = ledgerPath(runFolder);
  const db = openForReading(runFolder);
  const index = new ReferenceIndex();
  let sink: LineSink | null = null;
  try {
    sink = new LineSink(typeof target === "string" ? newFile(target) : target);
    const table = new EventTable(db, path);
    const { sequence, chain } = table.head();
    const header: HeaderLine = {
      format: formatName,
      version: formatVersion,
      run: options.run ?? basename(resolve(runFolder)),
      head: sequence,
      chain,
      blobs: options.blobs ?? true,
    };
    await sink.line(JSON.stringify(header));
    for (const record of table.checked(0)) {
      if (record.sequence > sequence) break;
      index.addRecord(record);
      await sink.line(lineOf(record));
    }
    const written = header.blobs
      ? await writeBlobs(new BlobStore(db, new BlobFiles(options.blobFolder), path), index, sink)
      : { blobs: 0, bytes: 0 };
    await sink.line(JSON.stringify({ end: true, events: sequence, blobs: written.blobs }));
    await sink.end();
    return { events: sequence, chain, ...written };
  } catch (error) {
    sink?.abandon();
    if (typeof target === "string" && sink !== null) rmSync(target, { force: true });
    throw typedFailure(error, typeof target === "string" ? target : path);
  } finally {
    index.close();
    db.close();
  }
}

/** Opened at once, so that a failing export knows whether the file is its own to remove. */
function newFile(target: string): Writable {
  try {
    return createWriteStream(target, { fd: openSync(target, "wx") });
  } catch (error) {
    const facts = {
      expected: "a path for a new file",
      found: error instanceof Error ? error.message : String(error),
      where: target,
      todo: "Choose another path.",
    };
    throw new LedgerUnavailableError(facts, { cause: error });
  }
}

/** `data` is canonical JSON already and goes out as it is. */
function lineOf({ sequence, at, type, version, data, chain }: EventRecord): string {
  return `{"event":{"sequence":${sequence},"at":${at},"type":${JSON.stringify(type)},"version":${version},"data":${data},"chain":"${chain}"}}`;
}

async function writeBlobs(store: BlobStore, index: ReferenceIndex, sink: LineSink): Promise<{ blobs: number; bytes: number }> {
  const done = new ReferenceIndex();
  let blobs = 0;
  let total = 0;
  try {
    for (const { digest, manifest, sequence } of index.all()) {
      const bytes = readUnlessPruned(store, index, digest);
      if (bytes === null) continue;
      if (manifest) for (const file of filesOfManifest(bytes) ?? []) index.add(file, sequence);
      if (done.isNamed(digest)) continue;
      done.add({ digest, bytes: bytes.byteLength, manifest: false }, sequence);
      await writeBlob(digest, bytes, sink);
      blobs++;
      total += bytes.byteLength;
    }
    return { blobs, bytes: total };
  } finally {
    done.close();
  }
}

async function writeBlob(digest: Digest, bytes: Uint8Array, sink: LineSink): Promise<void> {
  const parts = Math.max(1, Math.ceil(bytes.byteLength / blobPartBytes));
  for (let part = 0; part < parts; part++) {
    const piece = Buffer.from(
      bytes.buffer,
      bytes.byteOffset + part * blobPartBytes,
      Math.min(blobPartBytes, bytes.byteLength - part * blobPartBytes),
    );
    await sink.line(JSON.stringify({ blob: digest, bytes: bytes.byteLength, part, parts, base64: piece.toString("base64") }));
  }
}

/** Writes lines and waits whenever the stream is full, so that memory stays flat. */
class LineSink {
  #failure: unknown = null;
  #waiting = "";

  constructor(private readonly stream: Writable) {
    stream.on("error", (error) => {
      this.#failure ??= error;
    });
  }

  async line(text: string): Promise<void> {
    this.#waiting += `${text}\n`;
    if (this.#waiting.length > 64 * 1024) await this.#flush();
  }

  async end(): Promise<void> {
    await this.#flush();
    this.stream.end();
    await finished(this.stream);
    if (this.#failure !== null) throw this.#failure;
  }

  abandon(): void {
    this.stream.destroy();
  }

  async #flush(): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    const text = this.#waiting;
    this.#waiting = "";
    if (text !== "" && !this.stream.write(text)) await once(this.stream, "drain");
  }
}
