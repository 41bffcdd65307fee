import type { RolePrompt } from "../../core/ports/researcher.js";
import { type CandidateManifest, readManifest } from "../../core/protocol/candidate.js";
import type { Digest } from "../../core/protocol/canonical.js";
import type { Answer } from "../../core/protocol/commands.js";
import type { Environment } from "../../core/protocol/environment.js";
import type { BlobReference } from "../../core/protocol/ids.js";

/** What roles need of the ledger's blobs. */
export interface Blobs {
  readonly blob: (digest: Digest) => Uint8Array;
  readonly putBlob: (bytes: Uint8Array) => BlobReference;
}

/**
 * A contract for one kind of thinking: a frozen view in, a checked output out. `View` is what its view builder makes,
 * `Document` the same with its contents filled in: JSON, bounded by the view and the environment.
 */
export interface Role<View, Document = unknown> {
  readonly name: string;
  /** Most UTF-8 bytes of a prompt in this environment, its repair and its schema: what a question to a model reserves rests on it. */
  promptBytes(environment: Environment): number;
  /** Fills a frozen view with its contents: the document that a researcher is handed. */
  document(view: View, environment: Environment, blobs: Blobs): Document;
  /** The document in words, for whoever reads words. `room`: as in the request of the port. */
  prompt(document: Document, room?: number): Omit<RolePrompt, "repair">;
  /** Reads a raw answer, storing what it holds; or says what is wrong with it. `base`: manifest of the call's base trial. */
  read(raw: Uint8Array, base: Digest, blobs: Blobs): Answer;
}

/** The manifest of a candidate that was stored. @throws BlobMissingError, BlobCorruptError */
export function manifestAt(digest: Digest, blobs: Pick<Blobs, "blob">): CandidateManifest {
  return readManifest(blobs.blob(digest));
}
