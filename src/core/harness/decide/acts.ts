import type { RunEvent } from "../../protocol/events.js";
import { isOver } from "../due.js";
import type { RunState } from "../state.js";
import { refuse } from "./decision.js";

/** What people do to a run. */

/** Nothing is due until a person resumes it. */
export const halted: readonly RunState["phase"][] = ["paused", "suspended"];

export function refuseOver(state: RunState): void {
  if (state.phase === "new" || isOver(state.phase))
    throw refuse("a run that is not over", `a run that is ${state.phase}`, "Start a new run; `trialist report` shows this one.");
}

export function acted(action: string, reason: string, subject: string | null = null): RunEvent {
  return { type: "operator.acted", data: { action, reason, subject } };
}
