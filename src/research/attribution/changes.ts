import { type RunState, type Trial, trialOf } from "../../core/harness/state.js";
import { type CandidateManifest, manifestOf } from "../../core/protocol/candidate.js";
import { type Digest, digestOf } from "../../core/protocol/canonical.js";
import { isStandingKeep, lineageOf, stepOf } from "../report/lineage.js";
import { manifestAt } from "../roles/role.js";

/** A file's content, as candidates have it. */
export interface Content {
  readonly digest: Digest;
  readonly bytes: Uint8Array;
  readonly executable: boolean;
}

/** A candidate's files by path. */
export type Tree = ReadonlyMap<string, Content>;

/** What one change did to one file; null: there was none, or is none any more. */
export interface FileStep {
  readonly path: string;
  readonly before: Content | null;
  readonly after: Content | null;
}

/** One change on the way from the baseline to the winner. */
export interface Change {
  /** The trial that brought it (`t3`), or a hunk of the whole difference (`h1`). */
  readonly id: string;
  /** The trial that it was made on. */
  readonly base: string;
  /** In the words of its plans, or where in the files it is. Hostile text. */
  readonly words: string;
  readonly files: readonly FileStep[];
}

/** What is needed of the ledger's blobs. @throws BlobMissingError when one was pruned */
export interface CandidateBlobs {
  readonly blob: (digest: Digest) => Uint8Array;
}

/**
 * Each kept step between the baseline and `winner` along the recorded bases, oldest first: the difference between its
 * candidate and that of the keep below it. What lies between two keeps and was not kept itself, such as a crash that was
 * repaired, is part of the step that was.
 */
export function stepsOf(state: RunState, winner: string, blobs: CandidateBlobs): Change[] {
  const nodes = keptLineage(state, winner);
  return nodes.slice(1).map((trial, index) => {
    const base = nodes[index] as Trial;
    return {
      id: trial.id,
      base: base.id,
      words: wordsOf(stepOf(state, trial.id)),
      files: fileSteps(treeOf(state, base.id, blobs), treeOf(state, trial.id, blobs)),
    };
  });
}

function keptLineage(state: RunState, winner: string): Trial[] {
  return [trialOf(state, "t0"), ...lineageOf(state, winner).filter((trial) => trial.id === winner || isStandingKeep(trial))];
}

function wordsOf(step: readonly Trial[]): string {
  return step.length === 1 ? (step[0] as Trial).hypothesis : step.map((trial) => `${trial.id}: ${trial.hypothesis}`).join(" | ");
}

/** A trial's candidate with its contents. */
export function treeOf(state: RunState, trial: string, blobs: CandidateBlobs): Tree {
  const { files } = manifestAt(trialOf(state, trial).candidate.blob, blobs);
  return new Map(files.map(({ path, digest, executable }) => [path, { digest, bytes: blobs.blob(digest), executable }]));
}

/** How two candidates differ, by path in code units. */
export function fileSteps(from: Tree, to: Tree): FileStep[] {
  const paths = [...new Set([...from.keys(), ...to.keys()])].sort();
  return paths
    .map((path) => ({ path, before: from.get(path) ?? null, after: to.get(path) ?? null }))
    .filter(({ before, after }) => !isSameContent(before, after));
}

export function isSameContent(a: Content | null, b: Content | null): boolean {
  return a?.digest === b?.digest && a?.executable === b?.executable;
}

export function contentOf(bytes: Uint8Array, executable: boolean): Content {
  return { digest: digestOf(bytes), bytes, executable };
}

export function manifestOfTree(tree: Tree): CandidateManifest {
  return manifestOf([...tree].map(([path, { digest, bytes, executable }]) => ({ path, digest, bytes: bytes.byteLength, executable })));
}

/** A content's text; null for bytes that are none. */
export function textOf({ bytes }: Content): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
