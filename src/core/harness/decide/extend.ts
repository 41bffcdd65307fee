import type { Command } from "../../protocol/commands.js";
import { configurationOf, type RunState } from "../state.js";
import { acted } from "./acts.js";
import { type Handler, only, refuse } from "./decision.js";
import { refuseWithoutRoom } from "./room.js";
import { wallBudgetWakeUp } from "./run.js";

/** Goes on with a finished run, under caps that leave room for more. */
export const extend: Handler<Extract<Command, { type: "extend" }>> = (state, command) => {
  refuseUnfinished(state);
  const { budget, stop, reason, afterHeldoutLook } = command;
  refuseWithoutRoom(state, { budget, stop });
  return only(
    acted("extend", reason),
    { type: "run.extended", data: { budget, stop, reason, afterHeldoutLook } },
    ...wallBudgetWakeUp(state.continued + 1, budget),
  );
};

/** @throws RefusedError for a run that is not finished */
export function refuseUnfinished(state: RunState): void {
  if (state.phase === "finished") return;
  const run = state.configuration === null ? "RUN" : configurationOf(state).run;
  const todo =
    state.phase === "cancelled"
      ? `A cancelled run stays over. \`trialist fork ${run} --name …\` begins another one with what it measured, where that stands.`
      : `\`trialist resume ${run}\` goes on with it as it is; it can be extended once it is finished.`;
  throw refuse("a run that is finished", `a run that is ${state.phase}`, todo);
}
