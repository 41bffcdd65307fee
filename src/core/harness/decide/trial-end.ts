import type { EventData, RunEvent } from "../../protocol/events.js";

type Ended = EventData<"trial.ended">;

/** The one place where a trial's end is written down. What is not given was not judged: null, and no keep under `any`. */
export function trialEnded(facts: Pick<Ended, "trial" | "status" | "reason" | "bestAtEnd"> & Partial<Ended>): RunEvent {
  return {
    type: "trial.ended",
    data: { stage: null, comparatorVerdict: null, leaderVerdict: null, keptUnderAny: false, ...facts, reason: facts.reason.slice(0, 4000) },
  };
}
