import { realpath } from "node:fs/promises";
import { GitRepository, type TreeEntry } from "../adapters/git/repository.js";
import { trialOf } from "../core/harness/state.js";
import type { CandidateFile } from "../core/protocol/candidate.js";
import { RefusedError } from "../core/protocol/errors.js";
import { commitMessage } from "../research/report/commit-message.js";
import { readTimeline } from "../research/report/timeline.js";
import { changeOf, surfaceFolder } from "./apply.js";
import type { InspectedRun } from "./inspect.js";

export interface Branched {
  readonly trial: string;
  readonly repository: string;
  readonly branch: string;
  readonly commit: string;
  readonly parent: string;
  readonly written: readonly string[];
  readonly removed: readonly string[];
}

/**
 * Puts a trial's candidate on a new branch as one commit, with its evidence in the message. Working tree, index and HEAD
 * are neither read nor changed, so uncommitted work is no obstacle and no part of it.
 * @throws RefusedError
 */
export async function branchCandidate(
  inspected: InspectedRun,
  trial: string | null,
  given: string | null,
  { branch, onto }: { readonly branch: string; readonly onto: string | null },
): Promise<Branched> {
  const { state, ledger } = inspected;
  const change = changeOf(inspected, trial);
  if (change.written.length + change.removed.length === 0)
    throw new RefusedError({ expected: "a candidate that changes something", found: `${change.trial}, which is the baseline` });
  const repository = await repositoryAround(await surfaceFolder(inspected, given));
  await repository.refuseBranch(branch);
  const parent = await parentCommit(repository, onto);
  const entries = await repository.entriesOf(parent);
  const ground: Ground = { repository, entries, parentName: onto ?? "HEAD" };
  for (const file of change.baseline.files) refuseOtherBaseline(ground, file, ledger.blob(file.digest));
  const known = new Set(change.baseline.files.map((file) => file.path));
  for (const { path } of change.written) refuseObstacle(ground, repository.prefix + path, !known.has(path));
  const place = (path: string): string => repository.prefix + path;
  const changes = new Map<string, { bytes: Uint8Array; executable: boolean } | null>();
  for (const path of change.removed) changes.set(place(path), null);
  for (const file of change.written) changes.set(place(file.path), { bytes: ledger.blob(file.digest), executable: file.executable });
  const head = { chain: ledger.chain, events: ledger.head };
  const evidence = { blob: (digest: string) => ledger.blob(digest), timeline: readTimeline(ledger.read()) };
  const message = commitMessage(inspected.name, state, trialOf(state, change.trial), head, evidence);
  const commit = await repository.commitOnBranch(branch, parent, changes, message);
  const written = change.written.map((file) => place(file.path));
  return { trial: change.trial, repository: repository.root, branch, commit, parent, written, removed: change.removed.map(place) };
}

async function repositoryAround(folder: string): Promise<GitRepository> {
  const real = await realpath(folder).catch(() => null);
  if (real !== null) return GitRepository.around(real);
  throw new RefusedError({
    expected: "the folder that the candidate belongs to",
    found: "none",
    where: folder,
    todo: "Name another one with --to.",
  });
}

async function parentCommit(repository: GitRepository, onto: string | null): Promise<string> {
  const commit = await repository.commitNamed(onto ?? "HEAD");
  if (commit !== null) return commit;
  throw new RefusedError({
    expected: "a commit to build on",
    found: onto === null ? "a repository whose current branch has no commit" : `${JSON.stringify(onto)}, which names none`,
    where: repository.root,
    todo: onto === null ? "Commit the baseline first, or name a commit with --onto." : "Name another one with --onto.",
  });
}

/** A commit to build on, and the files that it has. */
interface Ground {
  readonly repository: GitRepository;
  readonly entries: ReadonlyMap<string, TreeEntry>;
  readonly parentName: string;
}

/** The gain was measured against the baseline: on top of other files it would be a claim that nobody checked. */
function refuseOtherBaseline({ repository, entries, parentName }: Ground, file: CandidateFile, bytes: Uint8Array): void {
  const path = repository.prefix + file.path;
  refuseSubmodule({ repository, entries, parentName }, path);
  const found = differenceOf(entries.get(path), repository.blobId(bytes), file.executable);
  if (found === null) return;
  throw new RefusedError({
    expected: `the run's baseline in ${parentName}`,
    found: `${path}, ${found}`,
    where: repository.root,
    todo: "Commit the baseline as the run measured it, or name a commit that holds it with --onto COMMIT and merge the branch afterwards.",
  });
}

function differenceOf(entry: TreeEntry | undefined, id: string, executable: boolean): string | null {
  if (entry === undefined) return "which is not in it";
  if (entry.mode === "120000") return "which is a link there";
  if (entry.id !== id) return "whose content differs there (a filter such as that of Git LFS makes it differ too)";
  return (entry.mode === "100755") === executable ? null : "whose executable bit differs there";
}

/** A file that the candidate adds may not take the place of something that the run never saw. */
function refuseObstacle({ repository, entries, parentName }: Ground, path: string, isNew: boolean): void {
  refuseSubmodule({ repository, entries, parentName }, path);
  const taken = [...(isNew ? [path] : []), ...foldersAbove(path)].find((each) => entries.has(each));
  const below = taken ?? (isNew ? [...entries.keys()].find((each) => each.startsWith(`${path}/`)) : undefined);
  if (below === undefined) return;
  throw new RefusedError({
    expected: `a free place for ${path} in ${parentName}`,
    found: `${below}, which the run's baseline has not`,
    where: repository.root,
    todo: "Name the commit that the run started from with --onto COMMIT.",
  });
}

function refuseSubmodule({ repository, entries, parentName }: Ground, path: string): void {
  const submodule = [...foldersAbove(path), path].find((each) => entries.get(each)?.type === "commit");
  if (submodule === undefined) return;
  throw new RefusedError({
    expected: "files of this repository",
    found: `${path}, which lies in the submodule ${submodule} of ${parentName}`,
    where: repository.root,
    todo: "A branch of this repository cannot hold it: apply without --branch, or run inside the submodule.",
  });
}

function foldersAbove(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, depth) => parts.slice(0, depth + 1).join("/"));
}
