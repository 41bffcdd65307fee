import { type Difference, LedgerCorruptError } from "../../core/ports/ledger-errors.js";
import type { Digest } from "../../core/protocol/canonical.js";
import { chainAfter, type EventRecord } from "./event-record.js";

/** What an examination of a broken chain may look at. */
export interface RecordSource {
  readonly where: string;
  record(sequence: number): EventRecord | null;
  records(): Iterable<EventRecord>;
  headChain(): Digest;
}

const longestShift = 1000;

/** The error for records that are missing before `next`, or at the end when `next` is null. */
export function missingRecords(expected: number, next: number | null, head: number, where: string): LedgerCorruptError {
  const last = next === null ? head : next - 1;
  const range = last > expected ? `events ${expected} to ${last}` : `event ${expected}`;
  const found =
    next === null
      ? `no more records: ${range} at the end ${last > expected ? "are" : "is"} missing`
      : `event ${next} next: ${range} ${last > expected ? "are" : "is"} missing`;
  return new LedgerCorruptError(expected, next === null ? "truncated" : "dropped", { expected: `event ${expected}`, found, where });
}

/** The error for records after the head: nobody appended them. */
export function recordsAfterHead(head: number, where: string): LedgerCorruptError {
  return new LedgerCorruptError(head + 1, "altered", {
    expected: `event ${head} to be the last`,
    found: `a record ${head + 1} that no append made, or a changed head`,
    where,
  });
}

/** The error for a last record that follows well but is not the one that the head names. */
export function otherHead(record: EventRecord, headChain: Digest, where: string): LedgerCorruptError {
  const facts = {
    expected: `event ${record.sequence} with chain value ${headChain.slice(0, 16)}…, which the head names`,
    found: `${record.chain.slice(0, 16)}…`,
    where,
  };
  return new LedgerCorruptError(record.sequence, "chain-altered", facts);
}

/** The error for a record whose chain value does not follow from `previous`: says in which way, as far as the records tell. */
export function brokenRecord(previous: Digest, record: EventRecord, source: RecordSource): LedgerCorruptError {
  const [difference, found] = examine(previous, record, source);
  const facts = {
    expected: `event ${record.sequence} to follow from event ${record.sequence - 1} by the hash chain`,
    found,
    where: source.where,
  };
  return new LedgerCorruptError(record.sequence, difference, facts);
}

function examine(previous: Digest, record: EventRecord, source: RecordSource): [Difference, string] {
  const { sequence } = record;
  const home = whereMovedTo(previous, sequence, source);
  if (home !== null) return ["reordered", `another record in its place; the one that belongs here is at ${home}`];
  const next = source.record(sequence + 1);
  const follows = next === null ? source.headChain() === record.chain : chainAfter(record.chain, next) === next.chain;
  if (follows) return ["altered", "its time, type, version or data changed; its chain value is the recorded one"];
  const computed = chainAfter(previous, record);
  const chainOnly = next === null ? source.headChain() === computed : chainAfter(computed, next) === next.chain;
  if (chainOnly) return ["chain-altered", "its chain value changed; its content is the recorded one"];
  const shift = next === null ? null : shiftOf(record, next);
  if (shift !== null)
    return ["dropped", `a later record: ${shift} ${shift === 1 ? "record was" : "records were"} removed here and those after renumbered`];
  return ["altered", `chain value ${record.chain.slice(0, 16)}… where its content gives ${computed.slice(0, 16)}…`];
}

/** Sequence at which the record that belongs at `sequence` lies now; null when it is nowhere. */
function whereMovedTo(previous: Digest, sequence: number, source: RecordSource): number | null {
  for (const other of source.records()) {
    if (other.sequence > sequence && chainAfter(previous, { ...other, sequence }) === other.chain) return other.sequence;
  }
  return null;
}

/** How many numbers too low `record` and `next` are, when that explains them. */
function shiftOf(record: EventRecord, next: EventRecord): number | null {
  for (let shift = 1; shift <= longestShift; shift++) {
    if (chainAfter(record.chain, { ...next, sequence: next.sequence + shift }) === next.chain) return shift;
  }
  return null;
}
