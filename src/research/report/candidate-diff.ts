import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import type { CandidateFile, CandidateManifest } from "../../core/protocol/candidate.js";
import { kept, type ReadBlob } from "./evidence.js";

/** How one file differs between two candidates. */
export interface FileChange {
  readonly path: string;
  readonly kind: "added" | "removed" | "changed" | "mode";
  /** Unified diff; null when there is none to show, and `note` says why. */
  readonly patch: string | null;
  readonly note: string;
}

/** More inserted and deleted lines than this, and a diff says nothing to a reader: looking for a shorter one takes too long. */
const maximumEdits = 4000;
/** A file that is larger is compared by digest alone. */
const maximumBytes = 1_000_000;

/** Files that differ, by path in code units. Contents are exactly those of the candidates: escape them before showing them. */
export function diffCandidates(from: CandidateManifest, to: CandidateManifest, blob: ReadBlob): FileChange[] {
  const before = new Map(from.files.map((file) => [file.path, file]));
  const after = new Map(to.files.map((file) => [file.path, file]));
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.flatMap((path) => {
    const change = changeOf(path, before.get(path) ?? null, after.get(path) ?? null, blob);
    return change === null ? [] : [change];
  });
}

function changeOf(path: string, before: CandidateFile | null, after: CandidateFile | null, blob: ReadBlob): FileChange | null {
  if (before !== null && after !== null && before.digest === after.digest) {
    if (before.executable === after.executable) return null;
    return { path, kind: "mode", patch: null, note: after.executable ? "became executable" : "is no longer executable" };
  }
  const kind = before === null ? "added" : after === null ? "removed" : "changed";
  const size = `${before?.bytes ?? 0} to ${after?.bytes ?? 0} bytes`;
  const none = (note: string): FileChange => ({ path, kind, patch: null, note });
  if (Math.max(before?.bytes ?? 0, after?.bytes ?? 0) > maximumBytes) return none(`too large to compare line by line, ${size}`);
  const [old, fresh] = [textOf(before, blob), textOf(after, blob)];
  if (old === "pruned" || fresh === "pruned") return none(`its content is no longer kept, ${size}`);
  if (old === "binary" || fresh === "binary") return none(`binary, ${size}`);
  const patch = createTwoFilesPatch(
    before === null ? "/dev/null" : `a/${path}`,
    after === null ? "/dev/null" : `b/${path}`,
    old.text,
    fresh.text,
    undefined,
    undefined,
    {
      context: 3,
      maxEditLength: maximumEdits,
      headerOptions: FILE_HEADERS_ONLY,
    },
  );
  return patch === undefined ? none(`too different for a diff, ${size}`) : { path, kind, patch, note: "" };
}

function textOf(file: CandidateFile | null, blob: ReadBlob): { readonly text: string } | "binary" | "pruned" {
  if (file === null) return { text: "" };
  const content = kept(blob, file.digest);
  if (content === null) return "pruned";
  if (content.includes(0)) return "binary";
  try {
    return { text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content) };
  } catch {
    return "binary";
  }
}

/** All changes as one text, as `diff -u` would print them. */
export function diffText(changes: readonly FileChange[]): string {
  return changes.map((change) => change.patch ?? `${change.kind} ${change.path}: ${change.note}\n`).join("");
}
