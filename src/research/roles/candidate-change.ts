import type { Proposal } from "../../core/harness/admission.js";
import { applyEdits } from "../../core/harness/edits.js";
import { type CandidateFile, type CandidateManifest, manifestOf } from "../../core/protocol/candidate.js";
import type { Violation } from "../../core/protocol/events.js";
import type { Blobs } from "./role.js";
import { plainFile } from "./tolerant-json.js";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** The texts that the proposal gives its files; null deletes one. `clean`: takes off what a model adds around a file. */
export function newTexts(
  proposal: Pick<Proposal, "files" | "edits">,
  base: CandidateManifest,
  blobs: Blobs,
  clean: (text: string) => string = plainFile,
): Map<string, string | null> | Violation[] {
  const files = new Map(base.files.map((file) => [file.path, file.digest]));
  const applied = applyEdits(proposal.edits, (path) => {
    const digest = files.get(path);
    return digest === undefined ? undefined : decoder.decode(blobs.blob(digest));
  });
  if (Array.isArray(applied)) return applied;
  const whole = [...proposal.files].map(([path, text]) => [path, text === null ? null : clean(text)] as const);
  return new Map([...whole, ...applied]);
}

/** A candidate with these texts in place of the base's; stores them. */
export function changedManifest(base: CandidateManifest, texts: ReadonlyMap<string, string | null>, blobs: Blobs): CandidateManifest {
  const files = new Map<string, CandidateFile>(base.files.map((file) => [file.path, file]));
  for (const [path, content] of texts) {
    if (content === null) files.delete(path);
    else {
      const stored = blobs.putBlob(encoder.encode(content));
      files.set(path, { path, digest: stored.blob, bytes: stored.bytes, executable: files.get(path)?.executable ?? false });
    }
  }
  return manifestOf([...files.values()]);
}
