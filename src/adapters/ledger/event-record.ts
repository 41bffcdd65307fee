import { hash } from "node:crypto";
import type { NewEvent, StoredEvent } from "../../core/ports/ledger.js";
import { EventRefusedError } from "../../core/ports/ledger-errors.js";
import { canonicalJson, type Digest } from "../../core/protocol/canonical.js";

/** Chain value of an empty ledger. */
export const emptyChain: Digest = "0".repeat(64);

/** Largest canonical JSON of one event's data; anything bigger belongs into a blob. */
export const maxEventLength = 8 * 1024 * 1024;

const typePattern = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$/;

/** An event as a row holds it: `data` is canonical JSON, `chain` follows from the row before. */
export interface EventRecord {
  readonly sequence: number;
  readonly at: number;
  readonly type: string;
  readonly version: number;
  readonly data: string;
  readonly chain: Digest;
}

/**
 * Chain value of a record: SHA-256 over the previous chain value, a line feed, and the canonical JSON of
 * `{at, data, sequence, type, version}`. `data` is canonical already, so the canonical form is put together and not made again.
 */
export function chainAfter(previous: Digest, record: Omit<EventRecord, "chain">): Digest {
  const { sequence, at, type, version, data } = record;
  return hash(
    "sha256",
    `${previous}\n{"at":${at},"data":${data},"sequence":${sequence},"type":${JSON.stringify(type)},"version":${version}}`,
    "hex",
  );
}

/** Gives events their places after `sequence` and `chain`. @throws EventRefusedError, NotCanonicalError before anything is written */
export function recordsOf(sequence: number, chain: Digest, at: number, events: readonly NewEvent[]): EventRecord[] {
  let previous = chain;
  return events.map((event, index) => {
    const data = canonicalJson(event.data ?? null);
    const unchained = { sequence: sequence + index + 1, at, type: event.type, version: event.version, data };
    refuseUnreadable(unchained);
    previous = chainAfter(previous, unchained);
    return { ...unchained, chain: previous };
  });
}

/** The event that a record holds. Its chain must have been checked. */
export function eventOf(record: EventRecord): StoredEvent {
  return { sequence: record.sequence, at: record.at, type: record.type, version: record.version, data: JSON.parse(record.data) };
}

/** Refuses what a chain could not hold without doubt, or what an import would refuse. */
export function refuseUnreadable(record: Omit<EventRecord, "chain">): void {
  const refuse = (expected: string, found: string): never => {
    throw new EventRefusedError({
      expected,
      found,
      where: `event ${record.sequence} (${String(record.type).slice(0, 100)})`,
      todo: "Correct the command that makes this event; nothing was recorded.",
    });
  };
  if (typeof record.type !== "string" || !typePattern.test(record.type))
    refuse("an event type such as trial.ended", JSON.stringify(record.type) ?? "nothing");
  if (!Number.isSafeInteger(record.at)) refuse("a time in whole milliseconds", String(record.at));
  if (!Number.isSafeInteger(record.version) || record.version < 1) refuse("a version of 1 or more", String(record.version));
  if (record.data.length > maxEventLength)
    refuse(`at most ${maxEventLength} characters of data`, `${record.data.length} characters: put them into a blob`);
}
