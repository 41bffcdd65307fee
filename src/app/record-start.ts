import { type CandidateFiles, readCandidate } from "../adapters/environments/freeze.js";
import type { LoadedEnvironment } from "../adapters/environments/load.js";
import type { ReusedCalibration } from "../core/protocol/calibration.js";
import { canonicalJson } from "../core/protocol/canonical.js";
import type { QueuedCandidate } from "../core/protocol/commands.js";
import type { ManifestReference } from "../core/protocol/ids.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import { Run } from "../research/runner/run.js";
import type { KnownCalibration } from "./known-calibration.js";
import { ledgerAt } from "./ledgers.js";
import type { Project } from "./project.js";
import { writeOrigin } from "./run-origin.js";

/** A candidate that is measured before anything else, with its files. */
export interface QueuedFiles extends Omit<QueuedCandidate, "candidate"> {
  readonly files: CandidateFiles;
}

export interface StartingFiles {
  readonly baseline: CandidateFiles;
  readonly references: readonly { readonly name: string; readonly files: CandidateFiles }[];
  readonly queue: readonly QueuedFiles[];
  /** Null or left out: the baseline is measured. */
  readonly calibration?: KnownCalibration | null;
}

/** Makes the ledger of a run that has its configuration. */
export async function recordStart(
  project: Project,
  configuration: RunConfiguration,
  { baseline, references, queue, calibration = null }: StartingFiles,
  environmentFolder: string | null,
): Promise<void> {
  const folder = project.runFolder(configuration.run);
  const ledger = ledgerAt(project, folder, "create");
  try {
    if (environmentFolder !== null) await writeOrigin(folder, environmentFolder);
    const run = Run.open(ledger, Date.now);
    run.dispatch({
      type: "start",
      configuration,
      baseline: storeCandidate(run, baseline),
      references: references.map(({ name, files }) => ({ name, candidate: storeCandidate(run, files) })),
      queue: queue.map(({ files, ...candidate }) => ({ ...candidate, candidate: storeCandidate(run, files) })),
      calibration: calibration === null ? null : storeCalibration(run, calibration),
    });
  } finally {
    ledger.close();
  }
}

function storeCalibration(run: Run, { records, ...calibration }: KnownCalibration): ReusedCalibration {
  for (const bytes of records.values()) run.putBlob(bytes);
  return calibration;
}

function storeCandidate(run: Run, candidate: CandidateFiles): ManifestReference {
  for (const bytes of candidate.contents.values()) run.putBlob(bytes);
  return { ...run.putBlob(new TextEncoder().encode(canonicalJson(candidate.manifest))), manifest: true };
}

/** What an environment's own files begin a run with. */
export async function ownStartingFiles({
  folder,
  baseline,
  references,
}: LoadedEnvironment): Promise<Pick<StartingFiles, "baseline" | "references">> {
  return {
    baseline: await readCandidate(folder, baseline),
    references: await Promise.all(references.map(async ({ name, files }) => ({ name, files: await readCandidate(folder, files) }))),
  };
}
