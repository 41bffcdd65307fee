import { randomBytes } from "node:crypto";
import { createReadStream, existsSync, lstatSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import type { Database, Statement } from "better-sqlite3";
import { z } from "zod";
import { LedgerUnavailableError } from "../../core/ports/ledger-errors.js";
import { canonicalJson, type Digest } from "../../core/protocol/canonical.js";
import { TrialistError } from "../../core/protocol/errors.js";
import { BlobFiles } from "./blob-files.js";
import { filesOfManifest, ReferenceIndex } from "./blob-references.js";
import { createDatabase } from "./database.js";
import { chainAfter, emptyChain, refuseUnreadable } from "./event-record.js";
import { IncomingBlob } from "./incoming-blob.js";
import { linesOf } from "./lines.js";
import { makeDurableFolder, syncFolder } from "./run-files.js";
import { typedFailure } from "./sqlite-failures.js";
import {
  type BlobLine,
  blobLine,
  endLine,
  eventLine,
  formatName,
  formatVersion,
  type HeaderLine,
  headerLine,
  maxLineLength,
} from "./transfer-format.js";

/** A file is no whole and true export. Nothing was imported. */
export class ImportRefusedError extends TrialistError {
  readonly kind = "corrupt";
}

export interface ImportOptions {
  readonly blobFolder: string;
  /** Name of the source for messages; default the path, or "the import". */
  readonly name?: string;
}

export interface ImportReport {
  readonly run: string;
  readonly events: number;
  readonly chain: Digest;
  readonly blobs: number;
  /** Blobs that events name and that came neither with the file nor lie in the blob folder, pruned ones aside. */
  readonly missingBlobs: number;
}

/**
 * Reads an export into a new run's folder: all or nothing. Chain and blobs are checked while reading; names in the file are
 * never used as paths; only blobs that an event or a manifest names are taken. Until the last line was read everything lies in
 * a temporary folder beside the target (large blobs in the shared folder, where an unnamed one is harmless).
 * @throws ImportRefusedError, LineRefusedError, LedgerUnavailableError when the run exists, LedgerFullError
 */
export async function importLedger(source: Readable | string, runFolder: string, options: ImportOptions): Promise<ImportReport> {
  const name = options.name ?? (typeof source === "string" ? source : "the import");
  refuseExisting(runFolder);
  if (typeof source === "string") requireFile(source);
  const parent = dirname(resolve(runFolder));
  const temporary = join(parent, `.import-${process.pid}-${randomBytes(6).toString("hex")}`);
  let importing: Import | null = null;
  try {
    makeDurableFolder(parent);
    importing = new Import(temporary, options.blobFolder, name);
    const input = typeof source === "string" ? createReadStream(source) : source;
    for await (const line of linesOf(input, maxLineLength, name)) importing.take(line);
    const report = importing.finish();
    refuseExisting(runFolder);
    renameSync(temporary, runFolder);
    syncFolder(parent);
    return report;
  } catch (error) {
    importing?.abandon();
    rmSync(temporary, { recursive: true, force: true });
    throw typedFailure(error, runFolder);
  }
}

function refuseExisting(runFolder: string): void {
  if (lstatSync(runFolder, { throwIfNoEntry: false }) === undefined) return;
  throw new LedgerUnavailableError({
    expected: "no run of this name",
    found: "a folder that exists",
    where: runFolder,
    todo: "Import under another name.",
  });
}

function requireFile(path: string): void {
  if (existsSync(path)) return;
  throw new LedgerUnavailableError({ expected: "an export to read", found: "no such file", where: path, todo: "Check the path." });
}

const linesPerTransaction = 1000;

/** One import under way: takes line after line in the order header, events, blobs, end. */
class Import {
  readonly #db: Database;
  readonly #index = new ReferenceIndex();
  readonly #files: BlobFiles;
  readonly #insertEvent: Statement<[number, number, string, number, string, string]>;
  readonly #insertBlob: Statement<[string, Uint8Array]>;
  readonly #hasInline: Statement<[string], number>;
  #line = 0;
  #header: HeaderLine | null = null;
  #sequence = 0;
  #chain: Digest = emptyChain;
  #blob: IncomingBlob | null = null;
  #blobs = 0;
  #ended = false;

  constructor(
    folder: string,
    blobFolder: string,
    private readonly name: string,
  ) {
    this.#files = new BlobFiles(blobFolder);
    this.#db = createDatabase(folder);
    this.#db.pragma("synchronous = NORMAL");
    this.#insertEvent = this.#db.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)");
    this.#insertBlob = this.#db.prepare("INSERT INTO blobs VALUES (?, ?)");
    this.#hasInline = this.#db.prepare<[string], number>("SELECT 1 FROM blobs WHERE digest = ?").pluck();
    this.#db.exec("BEGIN");
  }

  take(text: string): void {
    this.#line++;
    const value = this.#parse(text);
    if (this.#ended) throw this.#refusal("nothing after the last line", "another line");
    if (this.#header === null) this.#takeHeader(value);
    else if (has(value, "event")) this.#takeEvent(this.#header, this.#checked(eventLine, value).event);
    else if (has(value, "blob")) this.#takeBlob(this.#header, this.#checked(blobLine, value));
    else this.#takeEnd(this.#header, this.#checked(endLine, value));
    if (this.#line % linesPerTransaction === 0) this.#db.exec("COMMIT; BEGIN");
  }

  finish(): ImportReport {
    if (this.#header === null || !this.#ended)
      throw this.#refusal("a last line that says the file is whole", "the end of the file: it was cut");
    this.#db.prepare("UPDATE head SET sequence = ?, chain = ?").run(this.#sequence, this.#chain);
    this.#db.exec("COMMIT");
    const missingBlobs = this.#countMissing(this.#header);
    this.#db.pragma("synchronous = FULL");
    this.#db.pragma("wal_checkpoint(TRUNCATE)");
    this.#close();
    return { run: this.#header.run, events: this.#sequence, chain: this.#chain, blobs: this.#blobs, missingBlobs };
  }

  abandon(): void {
    this.#blob?.abandon();
    this.#close();
  }

  #close(): void {
    if (!this.#db.open) return;
    this.#index.close();
    this.#db.close();
  }

  #takeHeader(value: unknown): void {
    if (!has(value, "format") || value.format !== formatName)
      throw this.#refusal(`an export of a ledger ("format":"${formatName}")`, "another file");
    if (has(value, "version") && typeof value.version === "number" && value.version > formatVersion) {
      throw this.#refusal(
        `version ${formatVersion} of the format or older`,
        `version ${value.version}, of a newer trialist`,
        "Update trialist.",
      );
    }
    this.#header = this.#checked(headerLine, value);
  }

  #takeEvent(header: HeaderLine, event: z.infer<typeof eventLine>["event"]): void {
    if (this.#blobs > 0 || this.#blob !== null) throw this.#refusal("all events before the first blob", "an event after a blob");
    const expected = this.#sequence + 1;
    if (event.sequence !== expected) throw this.#refusal(`event ${expected}`, `event ${event.sequence}`);
    if (expected > header.head) throw this.#refusal(`${header.head} events, as the header says`, "more");
    const record = { ...event, data: canonicalJson(event.data ?? null) };
    refuseUnreadable(record);
    if (chainAfter(this.#chain, record) !== event.chain)
      throw this.#refusal(
        `event ${expected} to follow from event ${expected - 1} by the hash chain`,
        "an altered, dropped or reordered record",
      );
    this.#insertEvent.run(record.sequence, record.at, record.type, record.version, record.data, record.chain);
    this.#index.addRecord(record);
    this.#sequence = expected;
    this.#chain = event.chain;
  }

  #takeBlob(header: HeaderLine, part: BlobLine): void {
    this.#requireEventsWhole(header);
    if (!header.blobs) throw this.#refusal("no blobs, as the header says", "a blob");
    this.#blob ??= this.#startBlob(part);
    const wrong = this.#blob.take(part);
    if (wrong !== null) throw this.#refusal(`part ${this.#blob.part} of blob ${this.#blob.digest}`, wrong);
    if (this.#blob.part < part.parts) return;
    const problem = this.#blob.finish((digest, bytes) => this.#insertBlob.run(digest, bytes));
    if (problem !== null) throw this.#refusal(`the bytes of blob ${this.#blob.digest}`, problem);
    this.#followManifest(this.#blob);
    this.#blob = null;
    this.#blobs++;
  }

  #startBlob(part: BlobLine): IncomingBlob {
    if (!this.#index.isNamed(part.blob))
      throw this.#refusal("blobs that an event or an earlier manifest names", `blob ${part.blob}, which nothing names`);
    if (this.#hasInline.get(part.blob) !== undefined) throw this.#refusal("every blob once", `blob ${part.blob} again`);
    return new IncomingBlob(part, this.#files);
  }

  #followManifest(blob: IncomingBlob): void {
    const sequence = this.#index.manifestNamedBy(blob.digest);
    if (sequence === null) return;
    for (const file of filesOfManifest(blob.inline ?? this.#files.read(blob.digest)) ?? []) this.#index.add(file, sequence);
  }

  #takeEnd(header: HeaderLine, end: z.infer<typeof endLine>): void {
    this.#requireEventsWhole(header);
    if (this.#blob !== null) throw this.#refusal(`part ${this.#blob.part} of blob ${this.#blob.digest}`, "the last line");
    if (end.events !== this.#sequence || end.blobs !== this.#blobs) {
      throw this.#refusal(`${end.events} events and ${end.blobs} blobs, as the last line says`, `${this.#sequence} and ${this.#blobs}`);
    }
    this.#ended = true;
  }

  #requireEventsWhole(header: HeaderLine): void {
    if (this.#sequence === header.head && this.#chain === header.chain) return;
    throw this.#refusal(
      `${header.head} events that end in chain value ${header.chain.slice(0, 16)}…`,
      `${this.#sequence} that end in ${this.#chain.slice(0, 16)}…`,
    );
  }

  #countMissing(header: HeaderLine): number {
    let missing = 0;
    for (const { digest } of this.#index.all()) {
      const isThere = this.#hasInline.get(digest) !== undefined || this.#files.has(digest) || this.#index.isPruned(digest);
      if (isThere) continue;
      if (header.blobs) throw this.#refusal(`blob ${digest}, which an event names`, "no such blob in the file");
      missing++;
    }
    return missing;
  }

  #parse(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw this.#refusal("a line of JSON", text === "" ? "an empty line" : `something else: ${text.slice(0, 60)}`, undefined, error);
    }
  }

  #checked<T>(schema: z.ZodType<T>, value: unknown): T {
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    throw this.#refusal(
      "a header, an event, a part of a blob, or the last line",
      z.prettifyError(parsed.error).slice(0, 1000),
      undefined,
      parsed.error,
    );
  }

  #refusal(
    expected: string,
    found: string,
    todo = "Export the run again from where it lies; nothing was imported.",
    cause?: unknown,
  ): ImportRefusedError {
    return new ImportRefusedError({ expected, found, where: `${this.name}, line ${this.#line}`, todo }, { cause });
  }
}

function has<K extends string>(value: unknown, key: K): value is Record<K, unknown> {
  return typeof value === "object" && value !== null && key in value;
}
