import { pipelineStages } from "../../core/harness/decide/measurements.js";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import { type AloneHost, type AloneResult, measureAlone } from "./measure-alone.js";

/** Takes a candidate through the stages of an in-loop measurement once, on one seed, without a run. */
export function measureAgain(host: AloneHost, id: string, manifest: CandidateManifest, seed: number): Promise<AloneResult> {
  const stages = new Set(pipelineStages(host.prepared.environment.stages));
  return measureAlone(host, id, manifest, seed, { belongs: (stage) => stages.has(stage), purpose: "in-loop", heldoutFolder: null });
}
