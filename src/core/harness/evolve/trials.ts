import { nothing, reserve, settle } from "../../protocol/budget.js";
import type { EventData } from "../../protocol/events.js";
import { compareValues } from "../../protocol/measurement.js";
import { statusClasses } from "../../protocol/status.js";
import { configurationOf, type OpenMeasurement, type RunState, type Trial, trialOf } from "../state.js";
import { numberOf } from "./calls.js";
import type { EventHandlers } from "./handlers.js";
import { recordKeep, unrecordKeep } from "./keep-record.js";
import { leaveQueue } from "./queue.js";

/** Trials, their measurements, and the leader. */
export const trialHandlers = {
  "trial.admitted": (state, data) => {
    admitTrial(state, data);
  },
  "measurement.requested": (state, data) => {
    state.counters.measurement = numberOf(data.measurement);
    state.measurements[data.measurement] = {
      id: data.measurement,
      trial: data.trial,
      subject: data.subject,
      reason: data.reason,
      purpose: data.purpose,
      pair: data.pair,
      round: data.round,
      seed: data.seed,
      attempts: 0,
      attempt: 0,
      running: false,
      reservation: nothing,
      evaluatorFailures: 0,
      endedStages: {},
      startedStage: null,
    };
    trialOf(state, data.trial).pending += 1;
    if (data.reason === "remeasurement") state.remeasuredAt = state.searchTrialsEnded;
  },
  "attempt.started": (state, data) => {
    const measurement = openMeasurement(state, data.measurement);
    measurement.attempts += 1;
    measurement.attempt = data.attempt;
    measurement.running = true;
    measurement.endedStages = {};
    measurement.startedStage = null;
    measurement.reservation = data.reservation;
    reserve(state.budget, data.reservation);
  },
  "stage.started": (state, data) => {
    openMeasurement(state, data.measurement).startedStage = `${data.stage}#${data.repeat}`;
  },
  "stage.ended": (state, data) => {
    const measurement = openMeasurement(state, data.measurement);
    measurement.endedStages[`${data.stage}#${data.repeat}`] = { outcome: data.outcome, stdout: data.stdout, stderr: data.stderr };
    measurement.startedStage = null;
  },
  "attempt.ended": (state, data) => {
    endAttempt(state, data);
  },
  "trial.provisional": (state, data) => {
    const trial = trialOf(state, data.trial);
    trial.phase = "provisional";
    trial.confirmation = { against: data.against, round: data.round, failed: null };
  },
  "trial.confirmed": (state, data) => {
    const trial = trialOf(state, data.trial);
    trial.leaderVerdict = data.verdict;
    trial.estimate = data.estimate;
  },
  "trial.ended": (state, data) => {
    endTrial(state, data);
  },
  "trial.retracted": (state, data) => {
    const trial = trialOf(state, data.trial);
    trial.retracted = true;
    unrecordKeep(state, trial);
    delete state.steers[data.trial];
    state.keeps = state.keeps.filter((id) => id !== data.trial);
    state.keptAfterTrials = state.trials[state.keeps.at(-1) ?? "t0"]?.endedAs ?? 0;
    state.recentValid = state.recentValid.filter((id) => id !== data.trial);
    state.topValid = state.topValid.filter((id) => id !== data.trial);
    rederiveAny(state);
  },
  "trial.steered": (state, { trial, steer, reason }) => {
    // Anew at the end: the order is that of the last words.
    delete state.steers[trial];
    if (steer !== "free") state.steers[trial] = { steer, reason };
  },
  "leader.changed": (state, data) => {
    state.leader = { trial: data.trial, values: data.estimate };
    // The starting point's estimate is the mean of all its repetitions, also when a retraction falls back to it.
    if (data.cause === "calibration") trialOf(state, data.trial).estimate = data.estimate;
    if (data.cause === "calibration") state.bestUnderAny = { trial: data.trial, values: data.estimate };
  },
} satisfies Partial<EventHandlers>;

function admitTrial(state: RunState, data: EventData<"trial.admitted">): void {
  if (data.kind === "search") state.counters.trial = numberOf(data.trial);
  if (data.kind === "reference") state.counters.reference = numberOf(data.trial);
  const plan = data.plan === null ? undefined : state.plans[data.plan];
  state.trials[data.trial] = {
    id: data.trial,
    kind: data.kind,
    plan: data.plan,
    candidate: data.candidate,
    base: data.base,
    parents: data.parents,
    move: data.move,
    name: data.name,
    hypothesis: plan?.hypothesis ?? "",
    expectedGain: plan?.expectedGain ?? null,
    phase: "measuring",
    status: null,
    stage: null,
    reason: "",
    retracted: false,
    values: null,
    records: null,
    selfReported: false,
    estimate: null,
    leaderVerdict: null,
    results: [],
    pending: 0,
    confirmation: null,
    failure: null,
    keptUnderAny: false,
    place: null,
    endedAs: null,
    cpuMs: 0,
    wallMs: 0,
  };
  state.candidates[data.candidate.blob] ??= data.trial;
  state.openTrials.push(data.trial);
  if (typeof data.move["queue"] === "string") leaveQueue(state, data.move["queue"]);
  if (data.kind === "search") state.budget.spent.trials += 1;
}

/** An open measurement. @throws RangeError when it is not open: the ledger would be out of order */
export function openMeasurement(state: RunState, id: string): OpenMeasurement {
  const measurement = state.measurements[id];
  if (measurement === undefined) throw new RangeError(`measurement ${id} is not open`);
  return measurement;
}

function endAttempt(state: RunState, data: EventData<"attempt.ended">): void {
  const measurement = openMeasurement(state, data.measurement);
  const trial = trialOf(state, measurement.trial);
  settle(state.budget, measurement.reservation, data.usage);
  trial.cpuMs += data.usage.computeMs;
  const wallMs = wallByStage(measurement);
  for (const ms of Object.values(wallMs)) trial.wallMs += ms;
  measurement.running = false;
  measurement.reservation = nothing;
  if (data.result.kind === "interrupted") return;
  if (data.result.kind === "evaluator_failure") {
    measurement.evaluatorFailures += 1;
    return;
  }
  delete state.measurements[data.measurement];
  trial.pending -= 1;
  if (data.result.kind === "measured") takeResult(state, trial, measurement, data.result, wallMs);
  else takeFailure(state, trial, measurement, data.result);
}

function wallByStage(measurement: OpenMeasurement): Record<string, number> {
  const byStage: Record<string, number> = {};
  for (const [key, ended] of Object.entries(measurement.endedStages)) {
    const stage = key.slice(0, key.indexOf("#"));
    byStage[stage] = (byStage[stage] ?? 0) + ended.outcome.wallMs;
  }
  return byStage;
}

function takeResult(
  state: RunState,
  trial: Trial,
  measurement: OpenMeasurement,
  result: Extract<EventData<"attempt.ended">["result"], { kind: "measured" }>,
  wallMs: Record<string, number>,
): void {
  const { values } = result.measured;
  if (measurement.reason === "remeasurement") {
    if (state.calibrationReused !== null) state.calibrationReused.checked = true;
    const first = configurationOf(state).environment.metrics[0]?.name ?? "";
    state.remeasurements.push({ measurement: measurement.id, afterTrials: state.searchTrialsEnded, value: values[first] ?? Number.NaN });
    return;
  }
  if (trial.values === null && measurement.subject === trial.id) {
    trial.values = values;
    trial.records = result.records;
    trial.selfReported = result.measured.selfReported.length > 0;
    if (measurement.reason !== "calibration") return;
  }
  trial.results.push({
    measurement: measurement.id,
    reason: measurement.reason,
    pair: measurement.pair,
    round: measurement.round,
    seed: measurement.seed,
    values,
    records: result.records,
    wallMs,
  });
}

function takeFailure(
  state: RunState,
  trial: Trial,
  measurement: OpenMeasurement,
  result: Extract<EventData<"attempt.ended">["result"], { kind: "ended" }>,
): void {
  const stage = result.stage ?? "";
  const ended = Object.entries(measurement.endedStages)
    .filter(([key]) => key.startsWith(`${stage}#`))
    .at(-1)?.[1];
  const failure = ended === undefined ? null : { stage, stdout: ended.stdout, stderr: ended.stderr };
  if (measurement.reason === "confirmation" || measurement.reason === "confirmation_of_leader") {
    // Where both sides fail, it is the candidate's own failure that counts.
    if (trial.confirmation === null || trial.confirmation.failed?.subject === trial.id) return;
    const { subject } = measurement;
    const what = subject === trial.id ? "a confirmation" : "the leader's paired run";
    trial.confirmation.failed = { subject, reason: `${what} ended ${result.status}: ${result.reason}` };
    return;
  }
  if (measurement.reason === "remeasurement") {
    // Whoever resumes the run wants to know whether the baseline holds now.
    state.remeasuredAt = state.searchTrialsEnded - configurationOf(state).environment.noise.remeasureEvery;
    return;
  }
  trial.failure = failure;
  trial.status = result.status;
  trial.stage = result.stage;
  trial.reason = result.reason;
  if (Object.keys(result.values).length > 0) trial.values = result.values;
}

function endTrial(state: RunState, data: EventData<"trial.ended">): void {
  const trial = trialOf(state, data.trial);
  trial.phase = "ended";
  trial.status = data.status;
  trial.stage = data.stage;
  trial.reason = data.reason;
  trial.keptUnderAny = data.keptUnderAny;
  trial.leaderVerdict = data.leaderVerdict ?? trial.leaderVerdict;
  state.openTrials.splice(state.openTrials.indexOf(trial.id), 1);
  for (const [id, measurement] of Object.entries(state.measurements)) {
    // A cancelled trial leaves measurements behind that nobody will make.
    if (measurement.trial !== trial.id || measurement.reason === "remeasurement") continue;
    settle(state.budget, measurement.reservation, nothing);
    delete state.measurements[id];
  }
  if (data.status === "keep") state.keeps.push(trial.id);
  if (trial.kind !== "search") return;
  state.statuses[data.status] = (state.statuses[data.status] ?? 0) + 1;
  state.searchTrialsEnded += 1;
  trial.endedAs = state.searchTrialsEnded;
  if (data.status === "keep") state.keptAfterTrials = state.searchTrialsEnded;
  if (statusClasses[data.status] !== "excluded") recordKeep(state, trial);
  if (statusClasses[data.status] === "valid") rememberValid(state, trial);
  // Nothing was learnt about this content: it may be proposed again.
  if (statusClasses[data.status] === "excluded" && state.candidates[trial.candidate.blob] === trial.id)
    delete state.candidates[trial.candidate.blob];
  if (!data.keptUnderAny || trial.values === null) return;
  state.keptUnderAny += 1;
  const best = state.bestUnderAny;
  if (best === null || compareValues(configurationOf(state).environment, trial.values, best.values) > 0)
    state.bestUnderAny = { trial: trial.id, values: trial.values };
}

/** How many trials a view can show of each kind; views stay bounded however long the run is. */
const remembered = 12;

function rememberValid(state: RunState, trial: Trial): void {
  state.recentValid.push(trial.id);
  if (state.recentValid.length > remembered) state.recentValid.shift();
  const environment = configurationOf(state).environment;
  const better = (other: string): boolean => compareValues(environment, trial.values ?? {}, trialOf(state, other).values ?? {}) > 0;
  const place = state.topValid.findIndex(better);
  state.topValid.splice(place === -1 ? state.topValid.length : place, 0, trial.id);
  if (state.topValid.length > remembered) state.topValid.pop();
}

/** What rule `any` would have kept, had the retracted trials never been: the one fold whose cost grows with the run. */
function rederiveAny(state: RunState): void {
  const { environment } = configurationOf(state);
  const baseline = trialOf(state, "t0");
  let best = { trial: "t0", values: baseline.estimate ?? baseline.values ?? {} };
  state.keptUnderAny = 0;
  for (const trial of Object.values(state.trials)) {
    const valid =
      trial.kind === "search" &&
      trial.status !== null &&
      trial.phase === "ended" &&
      statusClasses[trial.status] === "valid" &&
      !trial.retracted;
    if (!valid || trial.values === null || compareValues(environment, trial.values, best.values) <= 0) continue;
    best = { trial: trial.id, values: trial.values };
    state.keptUnderAny += 1;
  }
  state.bestUnderAny = best;
}
