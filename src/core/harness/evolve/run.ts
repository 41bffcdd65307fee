import type { RunState } from "../state.js";
import type { EventHandlers } from "./handlers.js";

const runningPhases: ReadonlySet<RunState["phase"]> = new Set(["calibrating", "searching", "finishing"]);

/** Phases of the run and its active time. */
export const runHandlers = {
  "run.started": (state, data) => {
    state.configuration = data.configuration;
    state.phase = "calibrating";
    state.resumeTo = "calibrating";
  },
  "run.span_opened": (state, data, event) => {
    // The span before ended at its last sign of life: an owner that died says nothing more.
    if (state.spanStartedAt !== null) closeSpan(state, Math.max(data.previousEndedAt ?? state.lastAt, state.lastAt));
    state.epoch = data.epoch;
    state.driven = data.drives;
    if (runningPhases.has(state.phase)) state.spanStartedAt = event.at;
  },
  "run.calibrated": (state, data) => {
    state.noise = data.noise;
    state.stageMs = data.stageMs;
    state.pipelineWallMs = data.pipelineWallMs;
    state.pipelineCpuMs = data.pipelineCpuMs;
    state.phase = "searching";
    state.resumeTo = "searching";
  },
  "run.paused": (state, data, event) => halt(state, "paused", data.reason, "", event.at),
  "run.suspended": (state, data, event) => halt(state, "suspended", data.reason, data.todo, event.at),
  "run.resumed": (state, data, event) => {
    state.phase = state.resumeTo;
    state.reason = data.reason;
    state.todo = "";
    state.spanStartedAt = event.at;
    state.callCounts.refusedInARow = 0;
    for (const call of Object.values(state.calls)) Object.assign(call, { halted: false, askedAtHalt: false });
    for (const measurement of Object.values(state.measurements)) {
      measurement.attempts = 0;
      measurement.evaluatorFailures = 0;
    }
  },
  "run.finishing": (state, data) => {
    state.phase = "finishing";
    state.resumeTo = "finishing";
    state.reason = data.reason;
  },
  "run.finished": (state, data, event) => halt(state, "finished", data.reason, "", event.at),
  "run.cancelled": (state, data, event) => halt(state, "cancelled", data.reason, "", event.at),
  "run.blobs_pruned": () => undefined,
  "wake_up.scheduled": (state, data) => {
    state.wakeUps[data.wakeUp] = { dueAtActiveMs: data.dueAtActiveMs };
  },
  "wake_up.fired": (state, data) => {
    delete state.wakeUps[data.wakeUp];
  },
  "knowledge.committed": (state, data) => {
    state.knowledge[data.kind] = { version: data.version, key: data.key, content: data.content };
    state.knowledgeKeys[`${data.kind}\n${data.key}`] = data.version;
  },
  "drift.noticed": (state, data) => {
    state.drift.push({ measurement: data.measurement, message: data.message });
  },
  "operator.acted": (state, data) => {
    if (data.action === "note") state.notes = [...state.notes, data.reason].slice(-rememberedNotes);
  },
} satisfies Partial<EventHandlers>;

/** Notes of the operator that researchers see. */
const rememberedNotes = 10;

function halt(state: RunState, phase: RunState["phase"], reason: string, todo: string, at: number): void {
  if (state.spanStartedAt !== null) {
    closeSpan(state, at);
    // A question that is out stays out: whoever asked it may yet say what came, or die.
    for (const call of Object.values(state.calls)) call.askedAtHalt = state.driven && !call.halted;
  }
  state.phase = phase;
  state.reason = reason;
  state.todo = todo;
}

function closeSpan(state: RunState, at: number): void {
  state.activeMs += Math.max(0, at - (state.spanStartedAt ?? at));
  state.spanStartedAt = null;
}
