import type { Cache } from "../adapters/environments/cache.js";
import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import type { MeasurementKey } from "../adapters/environments/kept-measurements.js";
import { runtimeIdentity } from "../adapters/environments/runtime.js";
import { surroundingsNow } from "../adapters/environments/surroundings.js";
import type { ReusedCalibration } from "../core/protocol/calibration.js";
import { digestOfValue } from "../core/protocol/canonical.js";
import type { RunConfiguration } from "../core/protocol/run.js";

/** What a measurement hangs on, as far as a run's configuration says it. */
export type MeasuredSubject = Pick<RunConfiguration, "environment" | "environmentDigest" | "host" | "sandbox" | "parallel">;

/** What makes a host another one for its measurements. */
export function hostFingerprint({ platform, cpus, cpuModel, gpus }: RunConfiguration["host"]): ReusedCalibration["from"]["host"] {
  return { platform, cpus, cpuModel, ...(gpus === undefined ? {} : { gpus }) };
}

/** How many are measured at once, where that matters: neighbours change what a clock says, and nothing else. Null: it does not. */
export function neighboursThatCount({ environment, parallel }: Pick<MeasuredSubject, "environment" | "parallel">): number | null {
  return environment.metrics.some(({ from }) => from.kind === "wall") ? parallel : null;
}

/**
 * What measurements of this machine are kept under: the one place that says which of them would come out alike today.
 * `more`: what this kind hangs on besides. Null: the runtime cannot be told, so nothing is kept and nothing taken over.
 */
export async function measurementKey(
  cache: Cache,
  frozen: FrozenEnvironment,
  subject: MeasuredSubject,
  more: MeasurementKey,
): Promise<MeasurementKey | null> {
  const { environment, environmentDigest, host, sandbox } = subject;
  const runtime = await runtimeIdentity(environment.runtime, frozen.packFolder).catch(() => null);
  if (runtime === null) return null;
  return {
    ...more,
    environmentDigest,
    host: hostFingerprint(host),
    sandbox,
    runtime,
    surroundings: digestOfValue(await surroundingsNow(environment, cache)),
    parallel: neighboursThatCount(subject),
  };
}
