import type { EventData, RunEvent } from "../../protocol/events.js";
import type { RunState } from "../state.js";

type Ended = EventData<"trial.ended">;

/** The one place where a trial's end is written down. What is not given was not judged: null, and no keep under `any`. */
export function trialEnded(facts: Pick<Ended, "trial" | "status" | "reason" | "bestAtEnd"> & Partial<Ended>): RunEvent {
  return {
    type: "trial.ended",
    data: { stage: null, comparatorVerdict: null, leaderVerdict: null, keptUnderAny: false, ...facts, reason: facts.reason.slice(0, 4000) },
  };
}

/** Closes the plan that a trial realizes. */
export function closePlan(state: RunState, trial: string, outcome: "completed" | "failed" | "cancelled"): RunEvent[] {
  const plan = state.trials[trial]?.plan ?? null;
  return plan === null ? [] : [{ type: "plan.closed", data: { plan, outcome } }];
}
