import { stat } from "node:fs/promises";
import { listFolder } from "../adapters/environments/folder-files.js";
import type { CandidateFiles } from "../adapters/environments/freeze.js";
import { snapshotSurface } from "../adapters/environments/workspace-files.js";
import { type Trial, trialNamed } from "../core/harness/state.js";
import { readManifest } from "../core/protocol/candidate.js";
import type { Environment } from "../core/protocol/environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import { type InspectedRun, inspectRun } from "./inspect.js";
import type { Project } from "./project.js";

/** Where a candidate that nobody was asked for comes from. */
export type CandidateSource =
  | { readonly kind: "folder"; readonly folder: string }
  | { readonly kind: "trial"; readonly run: string; readonly trial: string };

/** `RUN:tN` names a trial of another run; everything else is a folder (a folder of such a name is `./RUN:tN`). */
export function candidateSource(text: string, resolve: (folder: string) => string): CandidateSource {
  const named = /^([A-Za-z0-9][A-Za-z0-9._-]{0,63}):([tr](?:0|[1-9]\d{0,8}))$/.exec(text);
  const [, run, trial] = named ?? [];
  return run === undefined || trial === undefined ? { kind: "folder", folder: resolve(text) } : { kind: "trial", run, trial };
}

/**
 * The editable files of a folder that is laid out as the environment's baseline folder is. What lies beside them is left
 * out: a candidate has no say in it. @throws SurfaceRefusedError, RefusedError
 */
export async function candidateOfFolder(
  folder: string,
  { surface, baseline }: Pick<Environment, "surface" | "baseline">,
): Promise<CandidateFiles & { readonly leftOut: number }> {
  const facts = await stat(folder).catch(() => null);
  if (facts?.isDirectory() !== true)
    throw new RefusedError({
      expected: "a folder with the candidate's files, or RUN:tN for a trial of another run",
      found: facts === null ? "nothing" : "no folder",
      where: JSON.stringify(folder),
    });
  const { manifest, contents } = await snapshotSurface(folder, surface);
  if (manifest.files.length === 0)
    throw new RefusedError({
      expected: `files of the surface (${surface.editable.join(", ")})`,
      found: "none",
      where: JSON.stringify(folder),
      todo: `Name a folder that is laid out as the environment's baseline folder (${baseline}) is.`,
    });
  const byDigest = new Map(manifest.files.map(({ path, digest }) => [digest, contents.get(path) ?? new Uint8Array()]));
  return { manifest, contents: byDigest, leftOut: (await listFolder(folder)).length - manifest.files.length };
}

/** The candidate of a trial of some run of the project, with its bytes. @throws RefusedError, BlobMissingError */
export function candidateOfTrial(project: Project, run: string, id: string): CandidateFiles & { readonly trial: Trial } {
  const inspected = inspectRun(project, run);
  try {
    return filesOfTrial(inspected, id);
  } finally {
    inspected.close();
  }
}

/** @throws RefusedError for a trial that the run does not have, or that was retracted */
export function filesOfTrial({ state, ledger, name }: InspectedRun, id: string): CandidateFiles & { readonly trial: Trial } {
  const trial = trialNamed(state, id);
  if (trial === null)
    throw new RefusedError({ expected: `a trial of ${name}`, found: JSON.stringify(id), todo: `\`trialist show ${name}\` lists them.` });
  if (trial.retracted)
    throw new RefusedError({
      expected: "a trial that stands",
      found: `${id} of ${name}, which was retracted`,
      todo: `\`trialist show ${name} ${id}\` says why; name another one.`,
    });
  const manifest = readManifest(ledger.blob(trial.candidate.blob));
  return { trial, manifest, contents: new Map(manifest.files.map(({ digest }) => [digest, ledger.blob(digest)])) };
}
