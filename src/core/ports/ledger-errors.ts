import type { Digest } from "../protocol/canonical.js";
import { TrialistError } from "../protocol/errors.js";

interface Cause {
  readonly cause?: unknown;
}

/** An append was made against a head that is no longer the head. Nothing was recorded. */
export class VersionConflictError extends TrialistError {
  readonly kind = "refused";
  constructor(
    readonly expectedHead: number,
    readonly actualHead: number,
    where: string,
  ) {
    super({
      expected: `the ledger's head to be event ${expectedHead}`,
      found: `event ${actualHead}`,
      where,
      todo: "Read the events after the expected head, decide again, and append to the new head.",
    });
  }
}

/** A later owner has taken the run. Nothing was recorded, and nothing more may be by this handle. */
export class StaleOwnerError extends TrialistError {
  readonly kind = "refused";
  constructor(
    readonly epoch: number,
    readonly currentEpoch: number,
    where: string,
  ) {
    super({
      expected: `the run's owner to be of epoch ${epoch}`,
      found: `an owner of epoch ${currentEpoch}, who took the run later`,
      where,
      todo: "Stop this process: the later owner goes on from everything that was recorded.",
    });
  }
}

/** An event that no reader could accept: its type, version, time or size. Nothing was recorded. */
export class EventRefusedError extends TrialistError {
  readonly kind = "usage";
}

/** A write through a handle that only reads, or through one that is closed. */
export class LedgerNotWritableError extends TrialistError {
  readonly kind = "usage";
}

/** No room on the disk. Nothing was half written; the ledger can be used again once there is room. */
export class LedgerFullError extends TrialistError {
  readonly kind = "infrastructure";
  constructor(where: string, options?: Cause) {
    super(
      {
        expected: "room to record on the disk",
        found: "a full disk (or a used-up quota)",
        where,
        todo: "Free space, then resume the run: everything recorded until now is intact.",
      },
      options,
    );
  }
}

/** How a record differs from what its place in the chain demands. */
export type Difference = "altered" | "chain-altered" | "dropped" | "reordered" | "truncated" | "unreadable";

/** The ledger's records do not follow from each other. `sequence` is the first bad one; null when not even rows can be read. */
export class LedgerCorruptError extends TrialistError {
  readonly kind = "corrupt";
  constructor(
    readonly sequence: number | null,
    readonly difference: Difference,
    facts: { readonly expected: string; readonly found: string; readonly where: string },
    options?: Cause,
  ) {
    super(
      { ...facts, todo: "Do not resume this run; restore it from an export or a backup. Records before this one are intact." },
      options,
    );
  }
}

/** A blob that an event names is nowhere to be found. */
export class BlobMissingError extends TrialistError {
  readonly kind = "corrupt";
  constructor(
    readonly digest: Digest,
    where: string,
  ) {
    super({
      expected: `blob ${digest}`,
      found: "no such blob",
      where,
      todo: "Restore the blob from an export or a backup; `trialist verify` lists all that are missing.",
    });
  }
}

/** A blob's bytes are not those that its name promises. */
export class BlobCorruptError extends TrialistError {
  readonly kind = "corrupt";
  constructor(
    readonly digest: Digest,
    readonly actual: Digest,
    where: string,
  ) {
    super({
      expected: `bytes whose SHA-256 is ${digest}`,
      found: `bytes whose SHA-256 is ${actual}`,
      where,
      todo: "Restore the blob from an export or a backup; `trialist verify` lists all that are altered.",
    });
  }
}

/** There is no ledger here, there is one already, or its file cannot be opened. */
export class LedgerUnavailableError extends TrialistError {
  readonly kind = "usage";
}

/** The ledger was written by a version of trialist with another schema. */
export class LedgerSchemaError extends TrialistError {
  readonly kind = "usage";
}
