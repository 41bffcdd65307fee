import { TrialistError } from "../protocol/errors.js";
import { LedgerFullError } from "./ledger-errors.js";

/** No room on a disk. What was begun there was taken back; once there is room it can be done again. */
export class DiskFullError extends TrialistError {
  readonly kind = "infrastructure";
}

const fullCodes: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);

/** The system's word for a full disk, or for a used-up quota, as a typed error; what was typed stays. Null for anything else. */
export function asDiskFull(error: unknown, where?: string): DiskFullError | LedgerFullError | null {
  if (error instanceof DiskFullError || error instanceof LedgerFullError) return error;
  if (!(error instanceof Error) || !("code" in error) || !fullCodes.has(error.code)) return null;
  const { path } = error as { path?: unknown };
  const place = where ?? (typeof path === "string" ? path : undefined);
  return new DiskFullError(
    {
      expected: "room on the disk",
      found: "a full disk, or a used-up quota",
      ...(place === undefined ? {} : { where: place }),
      todo: "Make room (`trialist gc` finds some), then do the same again: nothing half written was left.",
    },
    { cause: error },
  );
}
