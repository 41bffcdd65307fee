import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { organizationNamed } from "../core/organizations/registry.js";
import type { GpuPool } from "../core/ports/gpus.js";
import { type RunConfiguration, runConfiguration } from "../core/protocol/run.js";
import { type ChosenResearchers, commandWallMs } from "./researchers.js";
import { thisHost } from "./this-host.js";

/** Bounds of every run that nobody has to choose. */
export const callLimits: RunConfiguration["limits"] = {
  callRounds: 3,
  refusedCalls: 5,
  attempts: 3,
  sessionTurns: 60,
  callWallMs: commandWallMs,
};

/** What a run is asked to be; the rest comes from its environment, its researchers and this machine. */
export interface WantedRun extends Pick<RunConfiguration, "organization" | "budget" | "seed" | "parallel" | "sandbox"> {
  readonly promotion: Partial<RunConfiguration["promotion"]>;
  /** When to end before the budget does. */
  readonly stop?: Partial<RunConfiguration["stop"]>;
}

/** Everything that a run is decided by, whole, as its start records it. `gate`: nobody has looked yet. */
export async function resolveConfiguration(
  run: string,
  frozen: FrozenEnvironment,
  wanted: WantedRun,
  chosen: ChosenResearchers,
  gpus: GpuPool,
): Promise<RunConfiguration> {
  const { environment } = frozen;
  const given: RunConfiguration = {
    run,
    environment,
    environmentDigest: frozen.digest,
    organization: {
      name: wanted.organization.name,
      configuration: organizationNamed(wanted.organization.name).configure(wanted.organization.configuration) as Record<string, unknown>,
    },
    ...chosen,
    budget: wanted.budget,
    promotion: { ...environment.promotion, ...wanted.promotion },
    stop: { target: null, patience: null, saturation: null, ...wanted.stop },
    seed: wanted.seed,
    parallel: wanted.parallel,
    sandbox: wanted.sandbox,
    limits: callLimits,
    host: await thisHost(gpus),
    gate: null,
  };
  return runConfiguration.parse(given);
}
