import { budgetUsedUp, calibrationNotCovered } from "../../core/harness/budget-sentences.js";
import { type RunState, trialOf } from "../../core/harness/state.js";
import type { CandidateProposal, Submission, TimelessCommand } from "../../core/protocol/commands.js";
import type { EventData, EventType, StoredRunEvent } from "../../core/protocol/events.js";
import type { ManifestReference } from "../../core/protocol/ids.js";
import { trialRecords } from "../engine/trial-records.js";
import { type Blobs, manifestAt } from "../roles/role.js";
import { readSafely } from "../runner/role-call.js";
import { startingCandidates } from "./starting-candidates.js";

/** What a cause is looked for in: the fold of all that came before, the events from here on, and the recorded blobs. */
export interface Place {
  readonly state: RunState;
  /** The recorded events from this place on. */
  readonly ahead: readonly StoredRunEvent[];
  readonly blobs: Blobs;
}

type Causes<T extends EventType> = (data: EventData<T>, place: Place) => TimelessCommand[];

const cause = (command: TimelessCommand): TimelessCommand => command;

/**
 * The commands that may have caused the event at the head of `place.ahead`, the likeliest first, made of what came from
 * outside and is on record: answers, outcomes, words of people. Empty for an event that never comes first.
 */
export function causesOf(place: Place): TimelessCommand[] {
  const [event] = place.ahead;
  if (event === undefined) return [];
  const find = causes[event.type] as Causes<EventType> | null;
  return find === null ? [] : find(event.data, place);
}

const advance: Causes<never> = () => [cause({ type: "advance" })];
const adjudicate = (trial: string, place: Place): TimelessCommand[] => [
  cause({ type: "adjudicate", trial, records: trialRecords(place.state, trial, place.blobs) }),
];

/** One entry per event type; null: no command begins with it, or, as of removed blobs, no record says what caused it. */
const causes: { readonly [T in EventType]: Causes<T> | null } = {
  "run.started": ({ configuration }, { ahead }) => [cause({ type: "start", configuration, ...startingCandidates(ahead) })],
  "run.span_opened": ({ epoch, previousEndedAt, drives }) => [cause({ type: "open_span", epoch, previousEndedAt, drives })],
  "run.forked": (data) => [cause({ type: "fork", ...data })],
  "call.requested": advance,
  "measurement.requested": advance,
  "wake_up.scheduled": advance,
  "run.finishing": ({ reason }) => [cause({ type: "advance" }), ...exhausted(budgetUsedUp.read(reason))],
  "run.suspended": ({ reason, todo }) => [cause({ type: "suspend", reason, todo }), ...exhausted(calibrationNotCovered.read(reason))],
  "run.finished": () => [cause({ type: "conclude" })],
  "call.answered": answered,
  "call.refused": (data, place) => (data.output === null ? [] : answered({ ...data, output: data.output }, place)),
  "call.failed": ({ call, kind, message, todo, usage, model, traffic }) =>
    kind === "cancelled" ? [] : [cause({ type: "fail_call", call, kind, message, todo, usage, model, traffic })],
  "session.opened": ({ role, researcher, base, reopens }) => [
    cause({ type: "open_session", role, researcher, base, reopens }),
    cause({ type: "advance" }),
  ],
  "session.turn_reserved": ({ session, reservation }) => [cause({ type: "reserve_turn", session, reservation })],
  "session.turn_ended": ({ session, usage, model, traffic }) => [cause({ type: "end_turn", session, usage, model, traffic })],
  "session.tool_called": ({ session, tool, traffic }) => [cause({ type: "record_tool", session, tool, traffic })],
  "session.closed": ({ session, reason, usage }) => [cause({ type: "close_session", session, reason, usage, interrupted: false })],
  "session.interrupted": ({ session, reason, usage }) => [cause({ type: "close_session", session, reason, usage, interrupted: true })],
  "plan.proposed": submitted,
  "queue.removed": advance,
  "attempt.started": ({ measurement }) => [cause({ type: "start_attempt", measurement })],
  "stage.started": ({ measurement, stage, repeat }) => [cause({ type: "start_stage", measurement, stage, repeat })],
  "stage.ended": ({ measurement, stage, repeat, outcome, stdout, stderr }) => [
    cause({ type: "end_stage", measurement, stage, repeat, outcome, stdout, stderr }),
  ],
  "attempt.ended": ({ measurement, result, usage }) => [cause({ type: "end_attempt", measurement, result, usage })],
  "trial.provisional": ({ trial }, place) => adjudicate(trial, place),
  "trial.confirmed": ({ trial }, place) => adjudicate(trial, place),
  "trial.ended": ({ trial }, place) => adjudicate(trial, place),
  "knowledge.committed": ({ kind, key, sources, content }) => [cause({ type: "commit_knowledge", kind, key, sources, content })],
  "wake_up.fired": ({ wakeUp }) => [cause({ type: "fire_wake_up", wakeUp })],
  "operator.acted": operated,

  "calibration.reused": null,
  "run.calibrated": null,
  "run.paused": null,
  "run.resumed": null,
  "run.cancelled": null,
  "run.extended": null,
  "run.blobs_pruned": null,
  "session.submitted": null,
  "plan.admitted": null,
  "plan.refused": null,
  "plan.closed": null,
  "queue.added": null,
  "queue.moved": null,
  "trial.admitted": null,
  "trial.retracted": null,
  "trial.steered": null,
  "leader.changed": null,
  "drift.noticed": null,
};

/** The answer is read again from what came back, by the role of its call. */
function answered(
  { call: id, output, usage, model, traffic }: Pick<EventData<"call.answered">, "call" | "output" | "usage" | "model" | "traffic">,
  { state, blobs }: Place,
): TimelessCommand[] {
  const call = state.calls[id];
  if (call === undefined) return [];
  const answer = readSafely(call.role, blobs.blob(output.blob), trialOf(state, call.base).candidate.blob, blobs);
  return [cause({ type: "answer_call", call: id, output, answer, usage, model, traffic })];
}

/** What became of the queue, from what follows in the same decision. */
function queued(
  {
    action,
    reason,
    subject,
  }: { readonly action: "enqueue" | "dequeue" | "requeue"; readonly reason: string; readonly subject: string | null },
  { ahead, state, blobs }: Place,
): TimelessCommand[] {
  const entry = subject ?? "";
  const moved = ahead.slice(1, 3).find((event) => event.type === "queue.moved" && event.data.entry === entry);
  const before = moved?.type === "queue.moved" ? moved.data.before : null;
  if (action === "dequeue") return [cause({ type: action, entry, reason })];
  if (action === "requeue") return [cause({ type: action, entry, before, reason })];
  const added = ahead[1];
  if (added?.type !== "queue.added") return [];
  const { entry: _entry, ...candidate } = added.data;
  return [cause({ type: action, before, reason, ...candidate, ...changesOf(candidate, state, blobs) })];
}

/** What a session or a person handed in, from the trial that came of it; a refused one left no candidate on record. */
function submitted(plan: EventData<"plan.proposed">, { ahead, state, blobs }: Place): TimelessCommand[] {
  const trial = ahead.slice(0, 4).find((event) => event.type === "trial.admitted");
  if ("call" in plan.by || trial?.type !== "trial.admitted") return [];
  const { hypothesis, expectedGain, respondsTo, commitment } = plan;
  const submission: Submission = {
    hypothesis,
    expectedGain,
    respondsTo,
    commitment,
    candidate: trial.data.candidate,
    ...changesOf({ candidate: trial.data.candidate, base: plan.base }, state, blobs),
  };
  const submit = cause({ type: "submit", by: plan.by, base: plan.base, submission });
  return typeof trial.data.move["queue"] === "string" ? [cause({ type: "advance" }), submit] : [submit];
}

/** A candidate's manifest, and the files in which it differs from its base. */
function changesOf(
  { candidate, base }: { readonly candidate: ManifestReference; readonly base: string },
  state: RunState,
  blobs: Blobs,
): Pick<CandidateProposal, "manifest" | "edited"> {
  const manifest = manifestAt(candidate.blob, blobs);
  const before = new Map(manifestAt(trialOf(state, base).candidate.blob, blobs).files.map((file) => [file.path, file.digest]));
  const changed = manifest.files.filter((file) => before.get(file.path) !== file.digest).map(({ path }) => path);
  const removed = [...before.keys()].filter((path) => !manifest.files.some((file) => file.path === path));
  return { manifest, edited: [...changed, ...removed] };
}

function operated({ action, reason, subject }: EventData<"operator.acted">, place: Place): TimelessCommand[] {
  switch (action) {
    case "enqueue":
    case "dequeue":
    case "requeue":
      return queued({ action, reason, subject }, place);
    case "extend":
      return place.ahead[1]?.type === "run.extended" ? [cause({ type: "extend", ...place.ahead[1].data })] : [];
    case "pause":
    case "note":
    case "resume":
    case "finish":
    case "cancel":
      return [cause({ type: action, reason })];
    case "retract":
    case "cancel_trial":
    case "hold":
    case "pin":
    case "release":
      return subject === null ? [] : [cause({ type: action, trial: subject, reason })];
    default:
      return [];
  }
}

function exhausted(cap: string | null): TimelessCommand[] {
  return cap === null ? [] : [cause({ type: "exhaust", cap })];
}
