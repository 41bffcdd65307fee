import { configurationOf } from "../core/harness/state.js";
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

/** Puts a candidate into a run's queue, whoever owns the run. @throws RefusedError, SurfaceRefusedError, OwnerCommandError */
export async function addToQueue(project: Project, name: string, request: QueueRequest): Promise<Operated & { readonly leftOut: number }> {
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
  return { ...(await operate(project, name, message)), leftOut: found.leftOut };
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
