import type { EventData } from "../../protocol/events.js";
import { configurationOf, type RunState } from "../state.js";
import { isWallBudget } from "../wall-budget.js";
import type { EventHandlers } from "./handlers.js";

/** A search that goes on after an end. */
export const continuationHandlers = {
  "run.extended": (state, data, event) => {
    const { reason, afterHeldoutLook } = data;
    state.extensions.push({ afterTrials: state.searchTrialsEnded, reason, afterHeldoutLook });
    searchOn(state, data, event.at);
  },
  "run.forked": (state, data, event) => {
    // The source may be running: its time goes on without this run.
    if (state.spanStartedAt !== null) state.activeMs += Math.max(0, state.lastAt - state.spanStartedAt);
    const { from, configuration, reason, afterHeldoutLook } = data;
    const inherited = { ...state.budget.spent, activeMs: state.activeMs };
    state.forkedFrom = { ...from, afterTrials: state.searchTrialsEnded, reason, afterHeldoutLook, inherited };
    state.configuration = { ...configurationOf(state), ...configuration };
    searchOn(state, { ...configuration, reason }, event.at);
  },
} satisfies Partial<EventHandlers>;

/** New caps, and a fresh allowance of whatever is counted in a row: who goes on has seen where it ended. */
function searchOn(
  state: RunState,
  { budget, stop, reason }: Pick<EventData<"run.extended">, "budget" | "stop" | "reason">,
  at: number,
): void {
  state.configuration = { ...configurationOf(state), budget, stop };
  state.phase = "searching";
  state.resumeTo = "searching";
  state.reason = reason;
  state.todo = "";
  state.spanStartedAt = at;
  state.patienceFrom = state.searchTrialsEnded;
  state.callCounts.refusedInARow = 0;
  state.continued += 1;
  for (const measurement of Object.values(state.measurements)) Object.assign(measurement, { attempts: 0, evaluatorFailures: 0 });
  for (const wakeUp of Object.keys(state.wakeUps)) if (isWallBudget(wakeUp)) delete state.wakeUps[wakeUp];
}
