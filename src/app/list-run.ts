import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { assertUsable, probeSandbox } from "../adapters/sandbox/probe.js";
import { RefusedError } from "../core/protocol/errors.js";
import { noResearcher } from "../core/protocol/ids.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import type { Host } from "./environments.js";
import { gpusFor } from "./gpus.js";
import type { Project } from "./project.js";
import { recordStart, type StartingFiles } from "./record-start.js";
import { resolveConfiguration } from "./run-configuration.js";

/** A run that measures a list of known candidates against a baseline of one's own choice, and asks no researcher. */
export interface ListRunRequest extends Pick<RunConfiguration, "promotion" | "seed" | "parallel" | "sandbox"> {
  /** Of the run; it is free. */
  readonly name: string;
  readonly frozen: FrozenEnvironment;
  /** Where the environment lies, if anywhere: then a change of it stops the run. */
  readonly environmentFolder: string | null;
  readonly starting: StartingFiles;
}

const nobody = { researchers: { "*": noResearcher }, alternates: [], researcherSettings: {}, callReservations: {} };

/** Records the start. Nothing is measured yet. @throws RefusedError for an empty list */
export async function createListRun(project: Project, host: Host, request: ListRunRequest): Promise<void> {
  const { name, frozen, starting, environmentFolder, ...wanted } = request;
  if (starting.queue.length === 0) throw new RefusedError({ expected: "candidates to measure", found: "an empty list" });
  if (wanted.sandbox === "bubblewrap") assertUsable(await probeSandbox());
  project.make();
  const organization = { name: "list", configuration: {} };
  const budget = { trials: starting.queue.length, costUsd: null, tokens: null, computeMs: null, wallMs: null };
  const gpus = gpusFor(frozen.environment, host, wanted.sandbox);
  const configuration = await resolveConfiguration(name, frozen, { ...wanted, organization, budget }, nobody, gpus);
  await recordStart(project, configuration, starting, environmentFolder);
}
