import type { Database, Statement } from "better-sqlite3";
import type { StoredEvent } from "../../core/ports/ledger.js";
import type { Digest } from "../../core/protocol/canonical.js";
import { brokenRecord, missingRecords, otherHead, type RecordSource, recordsAfterHead } from "./corrupt-record.js";
import { chainAfter, type EventRecord, emptyChain, eventOf } from "./event-record.js";

/** The row that every append moves. */
export interface Head {
  readonly epoch: number;
  readonly sequence: number;
  readonly chain: Digest;
}

type Row = [sequence: number, at: number, type: string, version: number, data: string, chain: string];

const firstPage = 64;
const largestPage = 512;
const pageLength = 2 * 1024 * 1024;

/**
 * Reads the event table in pages, so that memory stays flat, no read transaction stays open between pages, and the
 * owner can append in the middle of its own iteration.
 */
export class EventTable implements RecordSource {
  readonly #page: Statement<[number, number, number], Row>;
  readonly #record: Statement<[number], Row>;
  readonly #head: Statement<[], Head>;

  constructor(
    db: Database,
    readonly where: string,
  ) {
    const columns = "sequence, at, type, version, data, chain";
    this.#page = db
      .prepare<[number, number, number], Row>(
        `SELECT ${columns} FROM events WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?`,
      )
      .raw();
    this.#record = db.prepare<[number], Row>(`SELECT ${columns} FROM events WHERE sequence = ?`).raw();
    this.#head = db.prepare("SELECT epoch, sequence, chain FROM head");
  }

  /** The head as recorded. @throws LedgerCorruptError when the row is gone */
  head(): Head {
    const head = this.#head.get();
    if (head === undefined) throw missingRecords(1, null, 1, `${this.where}, table head`);
    return head;
  }

  headChain(): Digest {
    return this.head().chain;
  }

  record(sequence: number): EventRecord | null {
    const row = this.#record.get(sequence);
    return row === undefined ? null : recordOf(row);
  }

  records(): Iterable<EventRecord> {
    return this.#rows(0, Number.MAX_SAFE_INTEGER);
  }

  /** Checks that the last record is the one that the head names: cheap, for opening. @throws LedgerCorruptError */
  requireWholeTail(): void {
    const head = this.head();
    const last = this.record(head.sequence);
    if (head.sequence > 0 && last === null) throw missingRecords(head.sequence, null, head.sequence, this.where);
    this.#requireNothingAfter(head);
    if (last !== null) this.#requireChain(this.#chainBefore(head.sequence), last, head);
  }

  /** Events after `after` up to the head of this moment, each checked. @throws LedgerCorruptError at the first bad record */
  *read(after: number): Generator<StoredEvent, void, undefined> {
    for (const record of this.checked(after)) yield eventOf(record);
  }

  /** Like `read`, with the records as they are stored. */
  *checked(after: number): Generator<EventRecord, void, undefined> {
    const head = this.head();
    if (after >= head.sequence) return this.#requireNothingAfter(head);
    let expected = after + 1;
    let previous = this.#chainBefore(expected);
    for (const record of this.#rows(after, head.sequence)) {
      if (record.sequence !== expected) throw missingRecords(expected, record.sequence, head.sequence, this.where);
      this.#requireChain(previous, record, head);
      yield record;
      previous = record.chain;
      expected++;
    }
    if (expected <= head.sequence) throw missingRecords(expected, null, head.sequence, this.where);
    this.#requireNothingAfter(head);
  }

  #requireChain(previous: Digest, record: EventRecord, head: Head): void {
    const follows = chainAfter(previous, record) === record.chain;
    if (!follows) throw brokenRecord(previous, record, this);
    if (record.sequence === head.sequence && record.chain !== head.chain) throw otherHead(record, head.chain, this.where);
  }

  /** Another process may have appended since `head` was read; what counts is whether the newest head covers the rows. */
  #requireNothingAfter(head: Head): void {
    if (this.#page.all(head.sequence, Number.MAX_SAFE_INTEGER, 1).length === 0) return;
    if (this.head().sequence <= head.sequence) throw recordsAfterHead(head.sequence, this.where);
  }

  #chainBefore(sequence: number): Digest {
    if (sequence === 1) return emptyChain;
    const before = this.record(sequence - 1);
    if (before === null) throw missingRecords(sequence - 1, sequence, sequence, this.where);
    return before.chain;
  }

  *#rows(after: number, last: number): Generator<EventRecord, void, undefined> {
    let limit = firstPage;
    let position = after;
    while (position < last) {
      const page = this.#page.all(position, last, limit);
      let length = 0;
      for (const row of page) {
        length += row[4].length;
        position = row[0];
        yield recordOf(row);
      }
      if (page.length < limit) return;
      limit = Math.max(1, Math.min(limit * 2, largestPage, Math.floor((pageLength * page.length) / (length + 1))));
    }
  }
}

function recordOf(row: Row): EventRecord {
  return { sequence: row[0], at: row[1], type: row[2], version: row[3], data: row[4], chain: row[5] };
}
