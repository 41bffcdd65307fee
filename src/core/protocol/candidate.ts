import { z } from "zod";
import { type Digest, digestOfValue } from "./canonical.js";

/** One file of a candidate. `path` is relative to the surface, with `/`, never absolute, never holding `.` or `..` parts. */
export const candidateFile = z.strictObject({
  path: z.string().min(1).max(1000),
  digest: z.string().length(64),
  bytes: z.number().int().nonnegative(),
  executable: z.boolean(),
});
export type CandidateFile = z.infer<typeof candidateFile>;

/** An immutable snapshot of the editable surface: its files, ordered by path. Stored as one canonical JSON blob. */
export const candidateManifest = z.strictObject({ files: z.array(candidateFile) });
export type CandidateManifest = z.infer<typeof candidateManifest>;

/** Reads what a manifest's blob holds. @throws SyntaxError or ZodError for other bytes */
export function readManifest(bytes: Uint8Array): CandidateManifest {
  return candidateManifest.parse(JSON.parse(new TextDecoder().decode(bytes)));
}

/** A candidate's name: the digest of its manifest, so equal content has one name. */
export function candidateDigest(manifest: CandidateManifest): Digest {
  return digestOfValue(manifest);
}

/** Orders files by path in code units, so that a manifest has one form. */
export function manifestOf(files: readonly CandidateFile[]): CandidateManifest {
  return { files: [...files].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)) };
}
