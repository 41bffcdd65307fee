import type { Command, QueuedCandidate, ReferenceCandidate } from "../../core/protocol/commands.js";
import type { StoredRunEvent } from "../../core/protocol/events.js";

/** The baseline, the reference rows, the queue and the calibration that a recorded run began with. */
export function startingCandidates(
  ahead: readonly StoredRunEvent[],
): Pick<Extract<Command, { type: "start" }>, "baseline" | "references" | "queue" | "calibration"> {
  const references: ReferenceCandidate[] = [];
  const queue: QueuedCandidate[] = [];
  let calibration: Extract<Command, { type: "start" }>["calibration"] = null;
  let baseline: Extract<Command, { type: "start" }>["baseline"] = { blob: "", bytes: 0, manifest: true };
  for (const event of ahead) {
    // The first owner's span, or a person's word, is no part of the start any more.
    if (event.type === "run.span_opened" || event.type === "operator.acted") break;
    if (event.type === "queue.added") {
      const { entry: _entry, ...candidate } = event.data;
      queue.push(candidate);
    }
    if (event.type === "calibration.reused") calibration = event.data;
    if (event.type !== "trial.admitted") continue;
    if (event.data.kind === "baseline") baseline = event.data.candidate;
    else references.push({ name: event.data.name ?? "", candidate: event.data.candidate });
  }
  return { baseline, references, queue, calibration };
}
