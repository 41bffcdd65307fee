import type { Amount, BudgetAccount } from "../protocol/budget.js";
import { openAccount } from "../protocol/budget.js";
import type { EventData, Violation } from "../protocol/events.js";
import type { Expected } from "../protocol/expected.js";
import type { BlobReference, ManifestReference } from "../protocol/ids.js";
import type { MetricValues } from "../protocol/measurement.js";
import type { RunConfiguration } from "../protocol/run.js";
import type { TrialStatus } from "../protocol/status.js";
import type { Noise, Verdict } from "../protocol/verdict.js";
import { noKeepRecord } from "../statistics/saturation.js";

/**
 * The fold of a run's ledger. Plain JSON, so that a checkpoint is its serialization. `evolve` owns it and mutates it:
 * nothing is copied per event, and every look-up that a decision needs is an index kept here, so that cost does not
 * grow with the age of the run.
 */
export interface RunState {
  /** Sequence of the last event folded in. */
  version: number;
  phase: "new" | "calibrating" | "searching" | "finishing" | "paused" | "suspended" | "finished" | "cancelled";
  /** The phase to return to from paused or suspended. */
  resumeTo: "calibrating" | "searching" | "finishing";
  /** Why the run is in its phase, in the words of the event that put it there. */
  reason: string;
  todo: string;
  configuration: RunConfiguration | null;
  noise: Noise | null;
  /** Whose repetitions of the baseline were taken over; `checked`: the baseline was measured again here since. */
  calibrationReused: { run: string; measuredAt: number; checked: boolean } | null;
  stageMs: Record<string, number>;
  pipelineWallMs: number;
  pipelineCpuMs: number;
  /** Active time: closed spans, and where the open one began. */
  activeMs: number;
  spanStartedAt: number | null;
  lastAt: number;
  epoch: number;
  /** Whether the last owner performs what is due: one that came with a person's word alone asks nobody. */
  driven: boolean;
  budget: BudgetAccount;
  counters: { trial: number; reference: number; plan: number; call: number; session: number; measurement: number; queue: number };
  /** By id; insertion order is ledger order. */
  trials: Record<string, Trial>;
  plans: Record<string, Plan>;
  /** Candidate digest → the first trial of it. */
  candidates: Record<string, string>;
  /** Open ones only. */
  calls: Record<string, OpenCall>;
  sessions: Record<string, OpenSession>;
  measurements: Record<string, OpenMeasurement>;
  /** Trials without an end, in ledger order. */
  openTrials: string[];
  /** Candidates that wait for their admission, the next one first: they go before what the organization wants. */
  queue: QueueEntry[];
  /** Trials that the operator holds or has pinned, in the order of those words. */
  steers: Record<string, { steer: "held" | "pinned"; reason: string }>;
  leader: Leader | null;
  /** Trials that ended `keep`, in order, the baseline first: what a retraction falls back to. */
  keeps: string[];
  statuses: Partial<Record<TrialStatus, number>>;
  keptUnderAny: number;
  /** Best raw value by rule `any`, so that both rules can be reported side by side. */
  bestUnderAny: { trial: string; values: MetricValues } | null;
  callCounts: { answered: number; refused: number; failed: number; refusedInARow: number; lastViolations: Violation[] };
  /** By provider and model, what answered role calls and turns used. */
  models: Record<string, ModelBill>;
  searchTrialsEnded: number;
  /** How many searched trials had ended when the last keep that stands did. */
  keptAfterTrials: number;
  /** How many had ended when patience began to count: at the start, or when the run was last extended. */
  patienceFrom: number;
  /** How often the search went on after its end: it numbers the wake-ups of the wall-clock cap. */
  continued: number;
  /** Where a fork came from, and what it inherited of what is spent; the newest fork's where a fork was forked. */
  forkedFrom:
    | (EventData<"run.forked">["from"] & {
        afterTrials: number;
        reason: string;
        afterHeldoutLook: string | null;
        inherited: Amount & { activeMs: number };
      })
    | null;
  extensions: { afterTrials: number; reason: string; afterHeldoutLook: string | null }[];
  /** How often trials were keeps, the later ones counting more: what the chance of another one is estimated from. */
  keepRecord: { trials: number; keeps: number; keptPlaces: number };
  /** What the operator wants researchers to know, the newest last; bounded. */
  notes: string[];
  /** Valid searched trials for views, bounded: the newest and the best by raw value. */
  recentValid: string[];
  topValid: string[];
  remeasuredAt: number;
  remeasurements: { measurement: string; afterTrials: number; value: number }[];
  drift: { measurement: string; message: string }[];
  wakeUps: Record<string, { dueAtActiveMs: number }>;
  knowledge: Record<string, { version: number; key: string; content: BlobReference }>;
  knowledgeKeys: Record<string, number>;
  /** The organization's own fold. */
  organization: unknown;
}

export interface QueueEntry {
  id: string;
  candidate: ManifestReference;
  base: string;
  hypothesis: string;
  submitter: string;
  move: Record<string, string | number | null>;
}

export interface Trial {
  id: string;
  kind: "baseline" | "reference" | "search";
  plan: string | null;
  candidate: ManifestReference;
  base: string | null;
  parents: string[];
  move: Record<string, string | number | null>;
  name: string | null;
  /** The beginning of the plan's hypothesis; the whole is in the ledger. */
  hypothesis: string;
  expectedGain: number | null;
  phase: "measuring" | "provisional" | "ended";
  /** Only when ended. */
  status: TrialStatus | null;
  stage: string | null;
  reason: string;
  retracted: boolean;
  /** First in-loop measurement. */
  values: MetricValues | null;
  records: BlobReference | null;
  selfReported: boolean;
  /** Mean over confirmations alone, of the baseline over its repetitions; null when there are none. */
  estimate: MetricValues | null;
  leaderVerdict: Verdict | null;
  /** Measurements ended well, for confirmation and calibration. */
  results: TrialResult[];
  /** Measurements of it that are requested and not ended. */
  pending: number;
  /** The confirmation in progress, or the last one. */
  confirmation: { against: string; round: number; failed: { subject: string; reason: string } | null } | null;
  /** Output of the stage that failed it. */
  failure: { stage: string; stdout: BlobReference; stderr: BlobReference } | null;
  keptUnderAny: boolean;
  /** Its place among the trials that said something, in the order of their ends; null for one that did not, or is open. */
  place: number | null;
  /** How many searched trials had ended when it did; null for one that is none, or is open. */
  endedAs: number | null;
  cpuMs: number;
  wallMs: number;
}

export interface TrialResult {
  measurement: string;
  reason: EventData<"measurement.requested">["reason"];
  pair: number;
  round: number;
  seed: number;
  values: MetricValues;
  records: BlobReference | null;
  wallMs: Record<string, number>;
}

export interface Plan {
  id: string;
  base: string;
  comparator: string;
  hypothesis: string;
  expectedGain: number | null;
  status: "proposed" | "admitted" | "refused" | "completed" | "failed" | "cancelled";
}

export interface OpenCall {
  id: string;
  role: string;
  comparator: string;
  expects: Expected;
  plan: string | null;
  researcher: string;
  view: BlobReference;
  base: string;
  move: Record<string, string | number | null>;
  seed: number;
  bestAtView: string | null;
  /** What is left of it: what a round used is spent. */
  reservation: Amount;
  /** The round that is due, from 1. */
  round: number;
  violations: Violation[];
  /** What came in the round before and was refused; null when nothing came. */
  lastOutput: BlobReference | null;
  /** A failure suspended the run: nobody is asking now, and nothing of the reservation is being used. */
  halted: boolean;
  /** Its round was being asked when the run was paused or suspended, and no word of it has come since. */
  askedAtHalt: boolean;
}

export interface ModelBill {
  answers: number;
  tokens: number;
  costUsd: number;
  /** Requests whose use nobody told. */
  billedAtWorst: number;
  /** The newest ones, each once. */
  warnings: string[];
}

export interface OpenSession {
  id: string;
  role: string;
  researcher: string;
  base: string;
  /** Of the owner that opened it: after a crash another one interrupts it and opens it anew. */
  epoch: number;
  turn: number;
  isTurnOpen: boolean;
  /** By the open turn; nothing between two. */
  reserved: Amount;
  submitted: number;
}

export interface OpenMeasurement {
  id: string;
  trial: string;
  subject: string;
  reason: EventData<"measurement.requested">["reason"];
  purpose: "in-loop" | "confirmation";
  pair: number;
  round: number;
  seed: number;
  /** Attempts made since the run was last resumed: a person who resumes grants a fresh allowance. */
  attempts: number;
  /** Number of the last attempt, for ever rising. */
  attempt: number;
  running: boolean;
  reservation: Amount;
  evaluatorFailures: number;
  /** `STAGE#REPEAT` of the running attempt that ended, with what the engine needs to go on. */
  endedStages: Record<string, { outcome: EventData<"stage.ended">["outcome"]; stdout: BlobReference; stderr: BlobReference }>;
  startedStage: string | null;
}

export interface Leader {
  trial: string;
  /** What a challenger must beat: the confirmed estimate where there is one. */
  values: MetricValues;
}

export function initialState(): RunState {
  return {
    version: 0,
    phase: "new",
    resumeTo: "calibrating",
    reason: "",
    todo: "",
    configuration: null,
    noise: null,
    calibrationReused: null,
    stageMs: {},
    pipelineWallMs: 0,
    pipelineCpuMs: 0,
    activeMs: 0,
    spanStartedAt: null,
    lastAt: 0,
    epoch: 0,
    driven: false,
    budget: openAccount(),
    counters: { trial: 0, reference: 0, plan: 0, call: 0, session: 0, measurement: 0, queue: 0 },
    trials: {},
    plans: {},
    candidates: {},
    calls: {},
    sessions: {},
    measurements: {},
    openTrials: [],
    queue: [],
    steers: {},
    leader: null,
    keeps: [],
    statuses: {},
    keptUnderAny: 0,
    bestUnderAny: null,
    callCounts: { answered: 0, refused: 0, failed: 0, refusedInARow: 0, lastViolations: [] },
    models: {},
    searchTrialsEnded: 0,
    keptAfterTrials: 0,
    patienceFrom: 0,
    continued: 0,
    forkedFrom: null,
    extensions: [],
    keepRecord: { ...noKeepRecord },
    notes: [],
    recentValid: [],
    topValid: [],
    remeasuredAt: 0,
    remeasurements: [],
    drift: [],
    wakeUps: {},
    knowledge: {},
    knowledgeKeys: {},
    organization: null,
  };
}

/** Active time at `now`: pauses and the time without an owner do not count; a clock that was set back adds nothing. */
export function activeTime(state: RunState, now: number): number {
  return state.activeMs + (state.spanStartedAt === null ? 0 : Math.max(0, now - state.spanStartedAt));
}

/** The run's configuration. @throws RangeError before `run.started` */
export function configurationOf(state: RunState): RunConfiguration {
  if (state.configuration === null) throw new RangeError("the run has not started");
  return state.configuration;
}

/** The trial that somebody outside named, whatever they wrote; null when there is none. */
export function trialNamed(state: RunState, id: string): Trial | null {
  return Object.hasOwn(state.trials, id) ? trialOf(state, id) : null;
}

export function trialOf(state: RunState, id: string): Trial {
  const trial = state.trials[id];
  if (trial === undefined) throw new RangeError(`there is no trial ${id}`);
  return trial;
}
