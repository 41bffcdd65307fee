import { nothing } from "../../protocol/budget.js";
import type { Command } from "../../protocol/commands.js";
import type { RunEvent } from "../../protocol/events.js";
import { externalResearcher } from "../../protocol/ids.js";
import { activeTime, type RunState } from "../state.js";
import { type Handler, only, refuse } from "./decision.js";
import { refuseWithoutRoom } from "./room.js";
import { wallBudgetWakeUp } from "./run.js";
import { closePlan, trialEnded } from "./trial-end.js";

/** Makes a copied record a run of its own. What is open in it goes on in its source alone, which pays for it. */
export const fork: Handler<Extract<Command, { type: "fork" }>> = (state, command) => {
  const { from, configuration, reason, afterHeldoutLook } = command;
  if (state.configuration === null || state.noise === null)
    throw refuse("a run whose baseline is calibrated", `${from.run}, which is not yet`, "There is nothing to inherit: start a new run.");
  if (from.sequence !== state.version) throw refuse(`a fork at event ${state.version}`, `one at event ${from.sequence}`);
  refuseWithoutRoom({ ...state, activeMs: activeTime(state, state.lastAt) }, configuration);
  const why = `it went on in ${from.run}, and not in this fork`;
  return only(
    { type: "run.forked", data: { from, configuration, reason, afterHeldoutLook } },
    ...closeCalls(state, why),
    ...closeSessions(state, why),
    ...closeTrials(state, why),
    ...interruptAttempts(state, why),
    ...wallBudgetWakeUp(state.continued + 1, configuration.budget),
  );
};

function closeCalls(state: RunState, message: string): RunEvent[] {
  return Object.values(state.calls).map((call): RunEvent => {
    const data = { call: call.id, round: call.round, kind: "cancelled", message, todo: "", final: true, usage: nothing } as const;
    return { type: "call.failed", data: { ...data, model: null, traffic: null } };
  });
}

/** Ones that are driven here are opened anew from where they stood. */
function closeSessions(state: RunState, reason: string): RunEvent[] {
  return Object.values(state.sessions).map(({ id, researcher }): RunEvent => {
    const data = { session: id, reason, usage: nothing };
    return researcher === externalResearcher ? { type: "session.closed", data } : { type: "session.interrupted", data };
  });
}

function closeTrials(state: RunState, reason: string): RunEvent[] {
  return state.openTrials.flatMap((id): RunEvent[] => [
    trialEnded({ trial: id, status: "cancelled", reason, bestAtEnd: state.leader?.trial ?? null }),
    ...closePlan(state, id, "cancelled"),
  ]);
}

/** A re-measurement belongs to no open trial: it is made again here. */
function interruptAttempts(state: RunState, reason: string): RunEvent[] {
  return Object.values(state.measurements)
    .filter(({ running, trial }) => running && !state.openTrials.includes(trial))
    .map(({ id, attempt }): RunEvent => {
      return { type: "attempt.ended", data: { measurement: id, attempt, result: { kind: "interrupted", reason }, usage: nothing } };
    });
}
