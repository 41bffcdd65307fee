import { exceeds } from "../../protocol/budget.js";
import type { Command } from "../../protocol/commands.js";
import { configurationOf, type OpenSession, type RunState } from "../state.js";
import { type Handler, only, refuse } from "./decision.js";

type Of<T extends Command["type"]> = Extract<Command, { type: T }>;

/** A long session reads live state and submits on its own; after a crash it is closed as interrupted and opened anew. */
export const openSession: Handler<Of<"open_session">> = (state, command) => {
  if (state.phase !== "searching") throw refuse("a run that is searching", `a run that is ${state.phase}`);
  const base = state.trials[command.base];
  if (base === undefined || base.retracted) throw refuse("a base trial of this run that stands", command.base);
  return only({
    type: "session.opened",
    data: {
      session: `s${state.counters.session + 1}`,
      role: command.role,
      researcher: command.researcher,
      base: command.base,
      viewVersion: state.version,
      reopens: command.reopens,
    },
  });
};

export const reserveTurn: Handler<Of<"reserve_turn">> = (state, command) => {
  const session = openSessionOf(state, command.session);
  if (session.isTurnOpen) throw refuse("a session between two turns", `${session.id}, whose turn ${session.turn} has not ended`);
  const cap = exceeds(state.budget, configurationOf(state).budget, command.reservation);
  if (cap !== null) throw refuse(`room in the ${cap} budget`, "a turn that may pass it", "Close the session.");
  return only({ type: "session.turn_reserved", data: { session: session.id, turn: session.turn + 1, reservation: command.reservation } });
};

export const endTurn: Handler<Of<"end_turn">> = (state, command) => {
  const session = openSessionOf(state, command.session);
  if (!session.isTurnOpen) throw refuse("a session with an open turn", session.id);
  const { usage, model, traffic } = command;
  return only({ type: "session.turn_ended", data: { session: session.id, turn: session.turn, usage, model, traffic } });
};

export const recordTool: Handler<Of<"record_tool">> = (state, command) => {
  const session = openSessionOf(state, command.session);
  return only({
    type: "session.tool_called",
    data: { session: session.id, tool: command.tool, stateVersion: state.version, traffic: command.traffic },
  });
};

export const closeSession: Handler<Of<"close_session">> = (state, command) => {
  const session = openSessionOf(state, command.session);
  const data = { session: session.id, reason: command.reason, usage: command.usage };
  return only(command.interrupted ? { type: "session.interrupted", data } : { type: "session.closed", data });
};

function openSessionOf(state: RunState, id: string): OpenSession {
  const session = state.sessions[id];
  if (session === undefined) throw refuse("an open session", id);
  return session;
}
