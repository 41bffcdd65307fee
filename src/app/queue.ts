import { configurationOf, trialNamed } from "../core/harness/state.js";
import { readManifest } from "../core/protocol/candidate.js";
import { type CandidateSource, candidateOfFolder, candidateOfTrial } from "./candidate-source.js";
import { inspectRun } from "./inspect.js";
import { type Operated, operate } from "./operate.js";
import type { CandidateMessage } from "./perform.js";
import type { Project } from "./project.js";

/** A candidate that the operator wants measured next. */
export interface QueueRequest extends Pick<CandidateMessage, "base" | "before" | "reason"> {
  readonly source: CandidateSource;
  /** Null: that of the trial that it comes from. */
  readonly hypothesis: string | null;
}

export interface Added extends Operated {
  /** Files of the folder that are no part of the surface. */
  readonly leftOut: number;
  /** Files of the run's baseline that the candidate does not have: it stands for the whole surface. */
  readonly removes: readonly string[];
}

/** Puts a candidate into a run's queue, whoever owns the run. @throws RefusedError, SurfaceRefusedError, OwnerCommandError */
export async function addToQueue(project: Project, name: string, request: QueueRequest): Promise<Added> {
  const { source, base, before, reason } = request;
  const found = await candidateFrom(project, name, source);
  const message: CandidateMessage = {
    type: "add_candidate",
    base,
    before,
    reason,
    hypothesis: request.hypothesis ?? found.hypothesis,
    move: found.move,
    files: found.manifest.files.map(({ path, executable, digest }) => ({
      path,
      executable,
      content: Buffer.from(found.contents.get(digest) ?? []).toString("base64"),
    })),
  };
  const removes = missingFrom(project, name, new Set(message.files.map(({ path }) => path)));
  return { ...(await operate(project, name, message)), leftOut: found.leftOut, removes };
}

function missingFrom(project: Project, name: string, paths: ReadonlySet<string>): string[] {
  const { state, ledger, close } = inspectRun(project, name);
  try {
    // Before the baseline is admitted nothing can be added, and the run says so itself.
    const baseline = trialNamed(state, "t0");
    if (baseline === null) return [];
    const { files } = readManifest(ledger.blob(baseline.candidate.blob));
    return files.flatMap(({ path }) => (paths.has(path) ? [] : [path]));
  } finally {
    close();
  }
}

async function candidateFrom(project: Project, name: string, source: CandidateSource) {
  if (source.kind === "folder")
    return {
      ...(await candidateOfFolder(source.folder, environmentOf(project, name))),
      hypothesis: "put into the queue by hand",
      move: {},
    };
  const { trial, ...files } = candidateOfTrial(project, source.run, source.trial);
  const from = `${source.run}:${source.trial}`;
  return { ...files, leftOut: 0, hypothesis: `from ${from}: ${trial.hypothesis || (trial.name ?? "")}`, move: { from } };
}

function environmentOf(project: Project, name: string) {
  const inspected = inspectRun(project, name);
  try {
    return configurationOf(inspected.state).environment;
  } finally {
    inspected.close();
  }
}
