import { cpus, totalmem } from "node:os";
import type { GpuPool } from "../core/ports/gpus.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import { ownVersion } from "./version.js";

/** The machine that a run is started on, as it is recorded. `gpus`: those that its stages may have. */
export async function thisHost(gpus: GpuPool): Promise<RunConfiguration["host"]> {
  return {
    platform: process.platform,
    cpus: cpus().length,
    cpuModel: cpus()[0]?.model ?? "unknown",
    memoryBytes: totalmem(),
    ...(gpus.models.length === 0 ? {} : { gpus: [...gpus.models] }),
    versions: { trialist: await ownVersion(), node: process.versions.node },
  };
}
