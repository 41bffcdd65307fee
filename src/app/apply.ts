import { chmod, lstat, mkdir, readFile, realpath, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { tryGit } from "../adapters/git/git.js";
import { type RunState, trialNamed, trialOf } from "../core/harness/state.js";
import { organizationNamed } from "../core/organizations/registry.js";
import { type CandidateFile, type CandidateManifest, readManifest } from "../core/protocol/candidate.js";
import { digestOf } from "../core/protocol/canonical.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { InspectedRun } from "./inspect.js";
import { readOrigin } from "./run-origin.js";

export interface Applied {
  readonly trial: string;
  readonly folder: string;
  readonly written: readonly string[];
  readonly removed: readonly string[];
}

/**
 * Puts a trial's candidate into the working tree that the run's environment came from. Files that hold something else
 * than the run's baseline, or that git calls changed, are somebody's work: then nothing is written.
 * @throws RefusedError
 */
export async function applyCandidate(inspected: InspectedRun, trial: string | null, given: string | null): Promise<Applied> {
  const { ledger } = inspected;
  const named = changeOf(inspected, trial);
  const folder = await surfaceFolder(inspected, given);
  const from = await standing(inspected, folder);
  const { trial: id, baseline, candidate, written, removed } = from === "t0" ? named : changeOf(inspected, trial, from);
  await refuseForeignWork(folder, [...written.map((file) => file.path), ...removed], baseline, candidate);
  await placeAll(written.map((file) => ({ path: join(folder, file.path), bytes: ledger.blob(file.digest), executable: file.executable })));
  for (const path of removed) await rm(join(folder, path), { force: true });
  return { trial: id, folder, written: written.map((file) => file.path), removed };
}

/** What a trial's candidate changes of the run's baseline. */
export interface Change {
  readonly trial: string;
  readonly baseline: CandidateManifest;
  readonly candidate: CandidateManifest;
  readonly written: readonly CandidateFile[];
  readonly removed: readonly string[];
}

/** `from`: the trial that lies there now. @throws RefusedError when the run has no such trial */
export function changeOf({ state, ledger }: InspectedRun, trial: string | null, from = "t0"): Change {
  const id = trial ?? state.leader?.trial ?? "t0";
  if (trialNamed(state, id) === null)
    throw new RefusedError({ expected: "a trial of this run", found: id, todo: "`trialist show RUN` lists them." });
  const [baseline, candidate] = [manifestOf(state, ledger, from), manifestOf(state, ledger, id)];
  const removed = baseline.files.filter((file) => !candidate.files.some((each) => each.path === file.path)).map((file) => file.path);
  const written = candidate.files.filter(
    (file) => !baseline.files.some((each) => each.path === file.path && each.digest === file.digest && each.executable === file.executable),
  );
  return { trial: id, baseline, candidate, written, removed };
}

function manifestOf(state: RunState, ledger: InspectedRun["ledger"], trial: string): CandidateManifest {
  return readManifest(ledger.blob(trialOf(state, trial).candidate.blob));
}

/** What a working tree may hold before: the run's baseline; where the baseline was made for the run, any of its candidates. */
function startingPoints({ configuration, trials }: RunState): string[] {
  return configuration !== null && organizationNamed(configuration.organization.name).hasOwnBaseline ? Object.keys(trials) : ["t0"];
}

/** The first starting point that lies in the folder as it is; else the baseline. */
async function standing({ state, ledger }: InspectedRun, folder: string): Promise<string> {
  for (const trial of startingPoints(state)) {
    const manifest = manifestOf(state, ledger, trial);
    const held = await Promise.all(
      manifest.files.map(async ({ path, digest }) => {
        const facts = await lstat(join(folder, path)).catch(() => null);
        return facts?.isFile() === true && digestOf(await readFile(join(folder, path))) === digest;
      }),
    );
    if (held.every((is) => is)) return trial;
  }
  return "t0";
}

/** Folder of the editable surface in the working tree. @throws RefusedError when nobody knows it */
export async function surfaceFolder(inspected: InspectedRun, given: string | null): Promise<string> {
  const origin = await readOrigin(inspected.folder);
  const root = given ?? origin?.environmentFolder ?? null;
  if (root === null)
    throw new RefusedError({
      expected: "to know where the environment lies",
      found: "an imported run",
      todo: "Name the folder with --to.",
    });
  const baseline = inspected.state.configuration?.environment.baseline ?? ".";
  return given === null ? resolve(root, baseline) : resolve(given);
}

async function refuseForeignWork(
  folder: string,
  paths: readonly string[],
  baseline: CandidateManifest,
  candidate: CandidateManifest,
): Promise<void> {
  const root = await realpath(folder).catch(() => null);
  if (root === null)
    throw new RefusedError({
      expected: "the folder that the candidate goes to",
      found: "none",
      where: folder,
      todo: "Name another one with --to.",
    });
  // What the candidate leaves as it was counts too: beside something else it is not what was measured.
  const all = new Set([...paths, ...baseline.files.map((file) => file.path)]);
  for (const path of all) {
    const known = [baseline, candidate].flatMap((manifest) =>
      manifest.files.filter((file) => file.path === path).map((file) => file.digest),
    );
    await refuseForeignFile(root, path, known);
  }
  const dirty = await uncommitted(root, paths);
  if (dirty.length > 0)
    throw new RefusedError({
      expected: "no uncommitted work in the files that would be written",
      found: dirty.join(", "),
      where: folder,
      todo: "Commit or stash it, then apply again.",
    });
}

async function refuseForeignFile(root: string, path: string, known: readonly string[]): Promise<void> {
  const target = join(root, path);
  const parent = await nearestExisting(dirname(target));
  if (parent !== root && !parent.startsWith(root + sep))
    throw new RefusedError({ expected: "a path inside the folder", found: `${path}, which a link leads out of it`, where: root });
  const facts = await lstat(target).catch(() => null);
  if (facts === null) return;
  if (!facts.isFile()) throw new RefusedError({ expected: "a regular file", found: `${path}, which is none`, where: root });
  if (known.includes(digestOf(await readFile(target)))) return;
  throw new RefusedError({
    expected: "the file as the run's baseline has it",
    found: `${path} with other content`,
    where: root,
    todo: "Save your change elsewhere or put the baseline back, then apply again.",
  });
}

/** Where the nearest folder that exists really lies: what a new folder would be made in. */
async function nearestExisting(folder: string): Promise<string> {
  return realpath(folder).catch(() => nearestExisting(dirname(folder)));
}

/** Files among `paths` that git calls changed; none outside a repository. */
async function uncommitted(folder: string, paths: readonly string[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const status = await tryGit(folder, ["status", "--porcelain", "-z", "--untracked-files=no", "--", ...paths]);
  if (!status.ok) {
    // No git, or no repository: then the comparison with the baseline is what protects. Anything else is not known, so nothing is written.
    if (status.isMissing || status.stderr.includes("not a git repository")) return [];
    throw new RefusedError({
      expected: "git to say whether there is uncommitted work",
      found: status.stderr.slice(0, 500),
      where: folder,
      todo: "Mend the repository, then apply again.",
    });
  }
  return status.stdout.split("\0").flatMap((line) => (line.length > 3 ? [line.slice(3)] : []));
}

interface Placed {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly executable: boolean;
}

/** Everything is written beside its place first: where one file cannot be, none is changed. */
async function placeAll(files: readonly Placed[]): Promise<void> {
  const temporaryOf = ({ path }: Placed): string => `${path}.trialist-${process.pid}`;
  const made: string[] = [];
  try {
    for (const file of files) {
      const first = await mkdir(dirname(file.path), { recursive: true });
      if (first !== undefined) made.push(first);
      made.push(temporaryOf(file));
      await writeFile(temporaryOf(file), file.bytes);
      await chmod(temporaryOf(file), file.executable ? 0o755 : 0o644);
    }
  } catch (error) {
    for (const path of made) await rm(path, { recursive: true, force: true });
    throw new RefusedError(
      {
        expected: "a place for every file of the candidate",
        found: error instanceof Error ? error.message : String(error),
        todo: "Make room for it, then apply again; nothing was changed.",
      },
      { cause: error },
    );
  }
  for (const file of files) await rename(temporaryOf(file), file.path);
}
