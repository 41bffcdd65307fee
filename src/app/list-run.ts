import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { assertUsable, probeSandbox } from "../adapters/sandbox/probe.js";
import { RefusedError } from "../core/protocol/errors.js";
import { noResearcher } from "../core/protocol/ids.js";
import { type RunConfiguration, runConfiguration } from "../core/protocol/run.js";
import { callLimits, recordStart, type StartingFiles, thisHost } from "./create-run.js";
import { gpusFor } from "./gpus.js";
import type { Project } from "./project.js";

/** A run that measures a list of known candidates against a baseline of one's own choice, and asks no researcher. */
export interface ListRunRequest extends Pick<RunConfiguration, "promotion" | "seed" | "parallel" | "sandbox"> {
  /** Of the run; it is free. */
  readonly name: string;
  readonly frozen: FrozenEnvironment;
  /** Where the environment lies, if anywhere: then a change of it stops the run. */
  readonly environmentFolder: string | null;
  readonly starting: StartingFiles;
}

/** Records the start. Nothing is measured yet. @throws RefusedError for an empty list */
export async function createListRun(project: Project, request: ListRunRequest): Promise<void> {
  const { name, frozen, starting, promotion, seed, parallel, sandbox } = request;
  if (starting.queue.length === 0) throw new RefusedError({ expected: "candidates to measure", found: "an empty list" });
  if (sandbox === "bubblewrap") assertUsable(await probeSandbox());
  project.make();
  const configuration = runConfiguration.parse({
    run: name,
    environment: frozen.environment,
    environmentDigest: frozen.digest,
    organization: { name: "list", configuration: {} },
    researchers: { "*": noResearcher },
    alternates: [],
    researcherSettings: {},
    budget: { trials: starting.queue.length, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    promotion,
    stop: { target: null, patience: null, saturation: null },
    seed,
    parallel,
    sandbox,
    limits: callLimits,
    callReservations: {},
    host: await thisHost(gpusFor(frozen.environment, { variables: process.env }, sandbox)),
    gate: null,
  } satisfies RunConfiguration);
  await recordStart(project, configuration, starting, request.environmentFolder);
}
