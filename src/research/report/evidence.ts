import { BlobMissingError } from "../../core/ports/ledger-errors.js";
import { type CandidateManifest, readManifest } from "../../core/protocol/candidate.js";
import type { ManifestReference } from "../../core/protocol/ids.js";
import { type RecordSet, recordSet } from "../../core/protocol/measurement.js";
import type { Attribution } from "../attribution/document.js";
import type { Timeline } from "./timeline.js";

/** Bytes of a blob by its digest. @throws BlobMissingError when it was pruned */
export type ReadBlob = (digest: string) => Uint8Array;

/** What a report may use beside the state. Whatever is missing is left out of the report, never guessed. */
export interface Evidence {
  readonly blob?: ReadBlob;
  readonly timeline?: Timeline;
  /** What `trialist attribute` found, where it was asked. */
  readonly attribution?: Attribution | null;
}

/** A blob's bytes, null when it is no longer kept. Any other failure is thrown. */
export function kept(blob: ReadBlob, digest: string): Uint8Array | null {
  try {
    return blob(digest);
  } catch (error) {
    if (error instanceof BlobMissingError) return null;
    throw error;
  }
}

/** A candidate's manifest, null when it is no longer kept. */
export function manifestFor(blob: ReadBlob, reference: ManifestReference): CandidateManifest | null {
  const found = kept(blob, reference.blob);
  return found === null ? null : readManifest(found);
}

/** Per-record results, null when they are no longer kept. */
export function recordsFor(blob: ReadBlob, digest: string): RecordSet | null {
  const found = kept(blob, digest);
  return found === null ? null : recordSet.parse(JSON.parse(decode(found)));
}

/** UTF-8; bytes that are none become replacement characters. */
export function decode(content: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(content);
}
