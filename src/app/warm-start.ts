import type { CandidateFiles } from "../adapters/environments/freeze.js";
import { surfaceViolations } from "../core/harness/admission.js";
import type { RunState } from "../core/harness/state.js";
import { candidateDigest } from "../core/protocol/candidate.js";
import type { QueuedCandidate } from "../core/protocol/commands.js";
import type { Environment } from "../core/protocol/environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import { filesOfTrial } from "./candidate-source.js";
import { type InspectedRun, inspectRun } from "./inspect.js";
import type { Project } from "./project.js";

/** Candidates of another run of the project that a new one begins with. Their numbers stay where they were measured. */
export interface WarmStart {
  readonly run: string;
  /** Null: its keeps that stand, the newest first, which is the best. */
  readonly trials: readonly string[] | null;
  /** Most keeps that are taken where no trial is named. */
  readonly most: number;
}

type WarmCandidate = Omit<QueuedCandidate, "candidate"> & { readonly files: CandidateFiles };

interface Destination {
  readonly environment: Environment;
  /** Digest of the baseline's manifest: what is there already is not measured as a trial. */
  readonly baseline: string;
}

/** @throws RefusedError when there is nothing to start from, or what is named does not fit */
export function warmStartQueue(project: Project, { run, trials, most }: WarmStart, to: Destination): WarmCandidate[] {
  const source = inspectRun(project, run);
  try {
    const chosen = trials === null ? keepsOf(source, to, most) : [...new Set(trials)];
    const queue = chosen.map((id) => queued(source, id, to));
    refuseTwice(run, chosen, queue);
    return queue;
  } finally {
    source.close();
  }
}

function keepsOf({ state, name }: InspectedRun, { baseline }: Destination, most: number): string[] {
  const keeps = standingKeeps(state);
  if (keeps.length === 0)
    throw new RefusedError({
      expected: "a run with a keep that stands",
      found: `${name}, which has none`,
      todo: `Name trials of it, such as --warm-start ${name}:t3; \`trialist show ${name}\` lists them.`,
    });
  const news = keeps.filter((id) => state.trials[id]?.candidate.blob !== baseline);
  if (news.length > 0) return news.slice(0, most);
  throw new RefusedError({
    expected: "a keep that differs from the environment's baseline",
    found: `that ${name} kept what is in the baseline now`,
    todo: "Leave --warm-start away: the run starts from there anyway.",
  });
}

/** Searched keeps, the newest first, each content once; a retracted one is none. */
function standingKeeps(state: RunState): string[] {
  const contents = new Set<string>();
  return [...state.keeps].reverse().filter((id) => {
    const trial = state.trials[id];
    if (trial?.kind !== "search" || contents.has(trial.candidate.blob)) return false;
    contents.add(trial.candidate.blob);
    return true;
  });
}

function queued(source: InspectedRun, id: string, { environment, baseline }: Destination): WarmCandidate {
  const { trial, manifest, contents } = filesOfTrial(source, id);
  const from = `${id} of ${source.name}`;
  if (candidateDigest(manifest) === baseline)
    throw new RefusedError({
      expected: "a candidate that differs from the environment's baseline",
      found: `${from}, which is the same`,
      todo: "Leave it away: the run starts from there anyway.",
    });
  const paths = manifest.files.map(({ path }) => path);
  const [violation] = surfaceViolations(environment.surface, paths, manifest);
  if (violation !== undefined)
    throw new RefusedError({
      expected: `a candidate of the surface of ${environment.name} (${environment.surface.editable.join(", ")})`,
      found: `${from}: ${violation.message}${violation.path === null ? "" : ` (${JSON.stringify(violation.path)})`}`,
      todo: `Name trials that fit, such as --warm-start ${source.name}:t3, or widen surface.editable.`,
    });
  const words = trial.hypothesis || (trial.name ?? "");
  return {
    files: { manifest, contents },
    base: "t0",
    hypothesis: `warm start: ${from}${words === "" ? "" : `: ${words}`}`,
    submitter: "warm start",
    move: { from: `${source.name}:${id}` },
  };
}

function refuseTwice(run: string, trials: readonly string[], queue: readonly WarmCandidate[]): void {
  const seen = new Map<string, string>();
  for (const [index, { files }] of queue.entries()) {
    const [digest, id] = [candidateDigest(files.manifest), trials[index] ?? ""];
    const twin = seen.get(digest);
    if (twin !== undefined)
      throw new RefusedError({
        expected: "every candidate once",
        found: `${twin} and ${id} of ${run}, which are the same`,
        todo: "Name one of them.",
      });
    seen.set(digest, id);
  }
}
