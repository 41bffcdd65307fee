import { type Amount, type BudgetLimits, nothing } from "../../protocol/budget.js";
import type { Command } from "../../protocol/commands.js";
import type { RunEvent } from "../../protocol/events.js";
import { type BlobReference, externalResearcher } from "../../protocol/ids.js";
import { budgetUsedUp, calibrationNotCovered } from "../budget-sentences.js";
import { drawsOf } from "../draw.js";
import { isOver } from "../due.js";
import { hasRoomForRound } from "../reservations.js";
import { activeTime, type OpenCall, type OpenSession, type RunState } from "../state.js";
import { isWallBudget, wallBudget } from "../wall-budget.js";
import { acted, halted, refuseOver } from "./acts.js";
import { type Handler, only, refuse } from "./decision.js";
import { queueAdded } from "./queue.js";
import { reuse } from "./reuse.js";
import { settleHeld } from "./steer.js";
import { closePlan, trialEnded } from "./trial-end.js";

type Of<T extends Command["type"]> = Extract<Command, { type: T }>;

/** Starts a run: the baseline's repetitions and the reference rows become due. */
export const start: Handler<Of<"start">> = (state, command) => {
  if (state.phase !== "new")
    throw refuse("a run that has not started", `a run that is ${state.phase}`, "Choose another name, or resume the run.");
  const { environment, budget, seed } = command.configuration;
  const draws = drawsOf(seed);
  const events: RunEvent[] = [{ type: "run.started", data: { configuration: command.configuration } }];
  events.push(...wallBudgetWakeUp(0, budget));
  const admitted = { plan: null, base: null, parents: [], move: {}, bestAtView: null, bestAtSubmission: null };
  events.push({
    type: "trial.admitted",
    data: { ...admitted, trial: "t0", kind: "baseline", candidate: command.baseline, name: "baseline" },
  });
  let measurement = 0;
  const request = (trial: string, reason: "calibration" | "reference", pair: number, measurementSeed: number): RunEvent => {
    measurement += 1;
    return {
      type: "measurement.requested",
      data: { measurement: `m${measurement}`, trial, subject: trial, reason, purpose: "in-loop", pair, round: 0, seed: measurementSeed },
    };
  };
  const reused = command.calibration ?? null;
  if (reused !== null) events.push(reuse(command.configuration, reused));
  for (let pair = 0; reused === null && pair < environment.noise.calibrate; pair++) {
    events.push(request("t0", "calibration", pair, pair === 0 ? environment.seed : draws.seed("calibration", pair)));
  }
  command.references.forEach((reference, index) => {
    const trial = `r${index + 1}`;
    events.push({
      type: "trial.admitted",
      data: { ...admitted, trial, kind: "reference", candidate: reference.candidate, name: reference.name },
    });
    events.push(request(trial, "reference", 0, environment.seed));
  });
  events.push(...command.queue.map((candidate, index): RunEvent => queueAdded(`q${index + 1}`, candidate)));
  return only(...events);
};

export const openSpan: Handler<Of<"open_span">> = (state, command) => {
  if (command.epoch <= state.epoch)
    throw refuse(`an epoch above ${state.epoch}`, `epoch ${command.epoch}`, "Another process owns the run.");
  const opened: RunEvent = {
    type: "run.span_opened",
    data: { epoch: command.epoch, previousEndedAt: command.previousEndedAt, drives: command.drives },
  };
  return only(opened, ...billInFlight(state));
};

/**
 * Calls that the owner before was asking when it died or left, where asking costs money: they may have reached a provider, so
 * that they are billed at their reservation, and are asked anew where the budget has room for that. A pause or a suspension ends
 * the span and not what is in flight.
 */
function billInFlight(state: RunState): RunEvent[] {
  let account = state.budget;
  const wasAsked = (call: OpenCall): boolean => call.askedAtHalt || (state.spanStartedAt !== null && state.driven && !call.halted);
  return Object.values(state.calls)
    .filter((call) => wasAsked(call) && (call.reservation.costUsd > 0 || call.reservation.tokens > 0))
    .map((call): RunEvent => {
      const usage = { ...nothing, costUsd: call.reservation.costUsd, tokens: call.reservation.tokens };
      const final = !hasRoomForRound({ ...state, budget: account }, call, usage);
      account = {
        ...account,
        spent: { ...account.spent, costUsd: account.spent.costUsd + usage.costUsd, tokens: account.spent.tokens + usage.tokens },
      };
      const message = "its process ended while it was being asked: what it may have used is billed";
      const data = { call: call.id, round: call.round, kind: "infrastructure", message, todo: "", final, usage } as const;
      return { type: "call.failed", data: { ...data, model: null, traffic: null } };
    });
}

export const pause: Handler<Of<"pause">> = (state, command) => {
  refuseOver(state);
  if (halted.includes(state.phase)) return only();
  return only(acted("pause", command.reason), { type: "run.paused", data: { reason: command.reason } });
};

export const resume: Handler<Of<"resume">> = (state, command) => {
  refuseOver(state);
  if (!halted.includes(state.phase)) return only();
  return only(acted("resume", command.reason), { type: "run.resumed", data: { reason: command.reason } });
};

/** Ends early and clean: nothing new starts, what is open may end. */
export const finish: Handler<Of<"finish">> = (state, command) => {
  refuseOver(state);
  const events: RunEvent[] = [acted("finish", command.reason)];
  if (halted.includes(state.phase)) events.push({ type: "run.resumed", data: { reason: command.reason } });
  if (state.resumeTo === "calibrating")
    return only(...events, ...cancelOpen(state, command.reason), { type: "run.cancelled", data: { reason: command.reason } });
  return only(...events, ...finishing(state, command.reason, true));
};

export const cancel: Handler<Of<"cancel">> = (state, command) => {
  refuseOver(state);
  return only(acted("cancel", command.reason), ...cancelOpen(state, command.reason), {
    type: "run.cancelled",
    data: { reason: command.reason },
  });
};

export const note: Handler<Of<"note">> = (state, command) => {
  refuseOver(state);
  return only(acted("note", command.reason));
};

export const suspend: Handler<Of<"suspend">> = (state, command) => {
  if (isOver(state.phase) || state.phase === "suspended") return only();
  return only({ type: "run.suspended", data: { reason: command.reason, todo: command.todo } });
};

export const exhaust: Handler<Of<"exhaust">> = (state, command) => {
  if (state.phase === "calibrating") {
    return only({
      type: "run.suspended",
      data: { reason: calibrationNotCovered.write(command.cap), todo: "Start a run with a larger budget." },
    });
  }
  return only(...finishing(state, budgetUsedUp.write(command.cap), false));
};

export const fireWakeUp: Handler<Of<"fire_wake_up">> = (state, command) => {
  const wakeUp = state.wakeUps[command.wakeUp];
  if (wakeUp === undefined) return only();
  if (activeTime(state, command.at) < wakeUp.dueAtActiveMs)
    throw refuse(`a wake-up that is due`, `${command.wakeUp}, due after ${wakeUp.dueAtActiveMs} ms of active time`);
  const events: RunEvent[] = [{ type: "wake_up.fired", data: { wakeUp: command.wakeUp } }];
  if (isWallBudget(command.wakeUp)) events.push(...finishing(state, "budget: wall-clock", false));
  return only(...events);
};

export const conclude: Handler<Of<"conclude">> = (state) => {
  const open = [...state.openTrials, ...Object.keys(state.calls), ...Object.keys(state.sessions)];
  if (state.phase !== "finishing" || open.length > 0) throw refuse("a run with nothing open", `a run that is ${state.phase}`);
  return only({ type: "run.finished", data: { reason: state.reason } });
};

export const commitKnowledge: Handler<Of<"commit_knowledge">> = (state, command) => only(...knowledgeEvents(state, command));

/** One version per key, however often it is asked for: after a crash the same commit comes again. */
export function knowledgeEvents(
  state: RunState,
  committed: { readonly kind: string; readonly key: string; readonly sources: readonly string[]; readonly content: BlobReference },
): RunEvent[] {
  if (state.knowledgeKeys[`${committed.kind}\n${committed.key}`] !== undefined) return [];
  const version = (state.knowledge[committed.kind]?.version ?? 0) + 1;
  return [
    {
      type: "knowledge.committed",
      data: { kind: committed.kind, key: committed.key, version, sources: [...committed.sources], content: committed.content },
    },
  ];
}

/**
 * Marks a trial as invalid. Everything that stood on it is listed: trials that started from it or were confirmed
 * against it. The leader falls back to the last keep that stands.
 */
export const retract: Handler<Of<"retract">> = (state, command) => {
  const trial = state.trials[command.trial];
  if (trial === undefined || trial.kind !== "search")
    throw refuse("a searched trial of this run, such as t3", command.trial, "`trialist show` lists them.");
  if (trial.status === null)
    throw refuse("a trial that has ended", `${command.trial}, which is still measured`, "Wait for its end, then retract it.");
  if (trial.retracted) return only();
  const events: RunEvent[] = [
    acted("retract", command.reason, command.trial),
    { type: "trial.retracted", data: { trial: command.trial, reason: command.reason, dependents: dependentsOf(state, command.trial) } },
  ];
  if (state.leader?.trial === command.trial) events.push(fallBack(state, command.trial));
  return only(...events);
};

function dependentsOf(state: RunState, retracted: string): string[] {
  const tainted = new Set([retracted]);
  for (const trial of Object.values(state.trials)) {
    const bases = [trial.base, trial.confirmation?.against ?? null, ...trial.parents];
    if (bases.some((base) => base !== null && tainted.has(base))) tainted.add(trial.id);
  }
  tainted.delete(retracted);
  return [...tainted];
}

function fallBack(state: RunState, retracted: string): RunEvent {
  const last = state.keeps.filter((id) => id !== retracted).at(-1) ?? "t0";
  const trial = state.trials[last];
  return {
    type: "leader.changed",
    data: { trial: last, previous: retracted, estimate: trial?.estimate ?? trial?.values ?? {}, cause: "retraction" },
  };
}

/** Stops new work. `endedCall` ended in this same decision. Not draining cancels what is open. Harmless when the run is finishing already. */
export function finishing(state: RunState, reason: string, drain: boolean, endedCall: string | null = null): RunEvent[] {
  const events: RunEvent[] = state.phase === "finishing" && drain ? [] : [{ type: "run.finishing", data: { reason, drain } }];
  events.push(
    ...cancelCalls(state, reason, endedCall),
    ...closeSessions(state, reason, (session) => !drain || session.researcher === externalResearcher),
  );
  events.push(...(drain ? settleHeld(state, reason) : cancelTrials(state, reason)));
  return events;
}

function cancelOpen(state: RunState, reason: string): RunEvent[] {
  return [...cancelCalls(state, reason, null), ...closeSessions(state, reason, () => true), ...cancelTrials(state, reason)];
}

/** Ends sessions that nobody here drives; what an open turn may have used is billed at its reservation. */
function closeSessions(state: RunState, reason: string, which: (session: OpenSession) => boolean): RunEvent[] {
  return Object.values(state.sessions)
    .filter(which)
    .map((session): RunEvent => ({ type: "session.closed", data: { session: session.id, reason, usage: session.reserved } }));
}

function cancelCalls(state: RunState, reason: string, except: string | null): RunEvent[] {
  return Object.values(state.calls)
    .filter((call) => call.id !== except)
    .map((call): RunEvent => {
      const usage = call.halted ? nothing : unknownUsage(call.reservation);
      const data = { call: call.id, round: call.round, kind: "cancelled", message: reason, todo: "", final: true, usage } as const;
      return { type: "call.failed", data: { ...data, model: null, traffic: null } };
    });
}

function cancelTrials(state: RunState, reason: string): RunEvent[] {
  return state.openTrials.flatMap((id): RunEvent[] => [
    trialEnded({ trial: id, status: "cancelled", reason, bestAtEnd: state.leader?.trial ?? null }),
    ...closePlan(state, id, "cancelled"),
  ]);
}

/** The wake-up of a cap of wall-clock, where there is one. `continued`: how often the search has gone on after its end. */
export function wallBudgetWakeUp(continued: number, { wallMs }: BudgetLimits): RunEvent[] {
  return wallMs === null ? [] : [{ type: "wake_up.scheduled", data: { wakeUp: wallBudget(continued), dueAtActiveMs: wallMs } }];
}

/** What was asked and never answered is billed at its reservation: it may have been used. No trial came of it. */
function unknownUsage(reservation: Amount): Amount {
  return { ...reservation, trials: 0 };
}
