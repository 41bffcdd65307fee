import { type Amount, nothing, reserve, settle } from "../../protocol/budget.js";
import { suspendsRun } from "../../protocol/call-failure.js";
import type { ModelUse } from "../../protocol/model-use.js";
import { roundReservation } from "../reservations.js";
import type { OpenCall, RunState } from "../state.js";
import type { EventHandlers } from "./handlers.js";

/** Characters of a hypothesis that the state keeps; the whole is in the ledger. */
const rememberedHypothesis = 400;

/** Role calls, sessions and plans. */
export const callHandlers = {
  "call.requested": (state, data) => {
    state.counters.call = numberOf(data.call);
    reserve(state.budget, data.reservation);
    state.calls[data.call] = {
      id: data.call,
      role: data.role,
      researcher: data.researcher,
      view: data.view,
      base: data.base,
      comparator: data.comparator,
      expects: data.expects,
      plan: data.plan,
      move: data.move,
      seed: data.seed,
      bestAtView: data.bestAtView,
      reservation: data.reservation,
      round: 1,
      violations: [],
      lastOutput: null,
      halted: false,
      askedAtHalt: false,
    };
  },
  "call.answered": (state, data) => {
    bill(state, data.model);
    state.callCounts.answered += 1;
    state.callCounts.refusedInARow = 0;
    endCall(state, data.call, data.usage);
  },
  "call.refused": (state, data) => {
    bill(state, data.model);
    state.callCounts.refused += 1;
    state.callCounts.lastViolations = data.violations;
    if (data.final) {
      state.callCounts.refusedInARow += 1;
      endCall(state, data.call, data.usage);
    } else Object.assign(nextRound(state, data.call, data.usage), { violations: data.violations, lastOutput: data.output });
  },
  "call.failed": (state, data) => {
    bill(state, data.model);
    state.callCounts.failed += 1;
    state.callCounts.lastViolations = [{ code: data.kind, message: data.message, path: null }];
    if (data.final) {
      if (data.kind !== "cancelled") state.callCounts.refusedInARow += 1;
      endCall(state, data.call, data.usage);
    } else if (suspendsRun(data.kind)) use(state, data.call, data.usage).halted = true;
    else Object.assign(nextRound(state, data.call, data.usage), { violations: [], lastOutput: null });
  },

  "session.opened": (state, data) => {
    state.counters.session = numberOf(data.session);
    state.sessions[data.session] = {
      id: data.session,
      role: data.role,
      researcher: data.researcher,
      base: data.base,
      epoch: state.epoch,
      turn: 0,
      isTurnOpen: false,
      reserved: { ...nothing },
      submitted: 0,
    };
  },
  "session.turn_reserved": (state, data) => {
    const session = state.sessions[data.session];
    if (session === undefined) return;
    reserve(state.budget, data.reservation);
    session.turn = data.turn;
    session.isTurnOpen = true;
    session.reserved = data.reservation;
  },
  "session.turn_ended": (state, data) => {
    bill(state, data.model);
    const session = state.sessions[data.session];
    if (session === undefined) return;
    settle(state.budget, session.reserved, data.usage);
    session.reserved = { ...nothing };
    session.isTurnOpen = false;
  },
  "session.tool_called": () => undefined,
  "session.submitted": (state, data) => {
    const session = state.sessions[data.session];
    if (session !== undefined) session.submitted += 1;
  },
  "session.closed": (state, data) => endSession(state, data.session, data.usage),
  "session.interrupted": (state, data) => endSession(state, data.session, data.usage),

  "plan.proposed": (state, data) => {
    state.counters.plan = numberOf(data.plan);
    state.plans[data.plan] = {
      id: data.plan,
      base: data.base,
      comparator: data.comparator,
      hypothesis: data.hypothesis.slice(0, rememberedHypothesis),
      expectedGain: data.expectedGain,
      status: "proposed",
    };
  },
  "plan.admitted": (state, data) => setPlan(state, data.plan, "admitted"),
  "plan.refused": (state, data) => setPlan(state, data.plan, "refused"),
  "plan.closed": (state, data) => setPlan(state, data.plan, data.outcome),
} satisfies Partial<EventHandlers>;

/** The number in an id: 12 of `t12`. */
export function numberOf(id: string): number {
  return Number(id.slice(1));
}

function setPlan(state: RunState, id: string, status: "admitted" | "refused" | "completed" | "failed" | "cancelled"): void {
  const plan = state.plans[id];
  if (plan === undefined) return;
  plan.status = status;
  // A closed plan's words are with its trial.
  if (status !== "admitted") plan.hypothesis = "";
}

/** Warnings of a model that are remembered. */
const rememberedWarnings = 5;

function bill(state: RunState, model: ModelUse | null): void {
  if (model === null) return;
  const name = `${model.provider} ${model.model}`;
  const known = state.models[name] ?? { answers: 0, tokens: 0, costUsd: 0, billedAtWorst: 0, warnings: [] };
  known.answers += 1;
  known.tokens += model.tokens.input + model.tokens.output;
  known.costUsd += model.costUsd;
  known.billedAtWorst += model.billedAtWorst;
  known.warnings = [...new Set([...known.warnings, ...model.warnings])].slice(-rememberedWarnings);
  state.models[name] = known;
}

function nextRound(state: RunState, id: string, usage: Amount): OpenCall {
  const call = use(state, id, usage);
  call.round += 1;
  return call;
}

/** What was used is spent, and what follows has its own reservation. */
function use(state: RunState, id: string, usage: Amount): OpenCall {
  const call = state.calls[id];
  if (call === undefined) throw new RangeError(`call ${id} is not open`);
  settle(state.budget, call.reservation, usage);
  call.askedAtHalt = false;
  call.reservation = roundReservation(state, call);
  reserve(state.budget, call.reservation);
  return call;
}

function endCall(state: RunState, id: string, usage: Amount): void {
  const call = state.calls[id];
  if (call === undefined) return;
  settle(state.budget, call.reservation, usage);
  delete state.calls[id];
}

function endSession(state: RunState, id: string, usage: Amount): void {
  const session = state.sessions[id];
  if (session === undefined) return;
  settle(state.budget, session.reserved, usage);
  delete state.sessions[id];
}
