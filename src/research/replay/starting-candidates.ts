import type { Command, ReferenceCandidate } from "../../core/protocol/commands.js";
import type { StoredRunEvent } from "../../core/protocol/events.js";

/** The baseline and the reference rows that a recorded run began with. */
export function startingCandidates(ahead: readonly StoredRunEvent[]): Pick<Extract<Command, { type: "start" }>, "baseline" | "references"> {
  const references: ReferenceCandidate[] = [];
  let baseline: Extract<Command, { type: "start" }>["baseline"] = { blob: "", bytes: 0, manifest: true };
  for (const event of ahead) {
    if (event.type === "attempt.started") break;
    if (event.type !== "trial.admitted") continue;
    if (event.data.kind === "baseline") baseline = event.data.candidate;
    else references.push({ name: event.data.name ?? "", candidate: event.data.candidate });
  }
  return { baseline, references };
}
