import { recordsNeeded } from "../../core/harness/decide/adjudicate.js";
import type { RunState } from "../../core/harness/state.js";
import type { RecordSet } from "../../core/protocol/measurement.js";

const decoder = new TextDecoder();

/** The per-record results that judging this trial needs, out of the blobs that hold them. @throws BlobMissingError, BlobCorruptError */
export function trialRecords(
  state: RunState,
  trial: string,
  blobs: { readonly blob: (digest: string) => Uint8Array },
): ReadonlyMap<string, RecordSet> {
  const read = (digest: string): RecordSet => JSON.parse(decoder.decode(blobs.blob(digest))) as RecordSet;
  return new Map(recordsNeeded(state, trial).map(({ blob }) => [blob, read(blob)]));
}
