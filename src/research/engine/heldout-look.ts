import type { CandidateManifest } from "../../core/protocol/candidate.js";
import type { Stage } from "../../core/protocol/environment.js";
import { type AloneHost, type AloneResult, measureAlone } from "./measure-alone.js";

/** What a look needs: no run, no ledger; nothing of it is recorded where a researcher could see it. */
export type LookHost = AloneHost & { readonly heldoutFolder: string | null };

/** A candidate's own stages, what chooses among its outputs on line, and the held-out ones; never the in-loop measurement. */
function belongsToLook(stage: Stage): boolean {
  return stage.trust === "candidate" || stage.trust === "held-out" || stage.purpose === "online";
}

/** Runs a candidate's own stages afresh, then the held-out ones, on one seed. */
export function lookAtHeldout(host: LookHost, id: string, manifest: CandidateManifest, seed: number): Promise<AloneResult> {
  const { heldoutFolder } = host;
  return measureAlone(host, id, manifest, seed, { belongs: belongsToLook, purpose: "held-out", heldoutFolder });
}
