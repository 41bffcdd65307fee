import { z } from "zod";
import type { StoredEvent } from "../ports/ledger.js";
import { amount, budgetLimits } from "./budget.js";
import { reusedCalibration } from "./calibration.js";
import { callFailure } from "./call-failure.js";
import { UnknownRecordError } from "./errors.js";
import { expected } from "./expected.js";
import {
  blobReference,
  callId,
  manifestReference,
  measurementId,
  planId,
  queueEntryId,
  runName,
  sessionId,
  trialId,
  wakeUpId,
} from "./ids.js";
import { measured, metricValues } from "./measurement.js";
import { modelUse } from "./model-use.js";
import { stageOutcome } from "./outcome.js";
import { forkConfiguration, runConfiguration, stopRule } from "./run.js";
import { trialStatus } from "./status.js";
import { noise, verdict } from "./verdict.js";

/**
 * Every event of a run: past tense, versioned. A changed shape gets a higher version and an entry in `upcasters`;
 * the old shape is never edited, since ledgers live longer than builds.
 */

const reason = z.string().max(4000);
export const violation = z.strictObject({ code: z.string().max(80), message: z.string().max(2000), path: z.string().max(1000).nullable() });
export type Violation = z.infer<typeof violation>;
export const usage = amount;
/** Who answered, where a language model was asked by us, and what went over the wire: a blob of JSON. */
const asked = { model: modelUse.nullable(), traffic: blobReference.nullable() };

/** Why a measurement is made. */
export const measurementReasons = ["first", "calibration", "reference", "confirmation", "confirmation_of_leader", "remeasurement"] as const;

export const eventSchemas = {
  "run.started": z.strictObject({ configuration: runConfiguration }),
  /** An owner took the run. `previousEndedAt`: the last sign of life of the span before, so that dead time is not active time. */
  "run.span_opened": z.strictObject({
    epoch: z.number().int().positive(),
    previousEndedAt: z.number().nullable(),
    /** False: it came with a person's word alone, and performs nothing that is due. */
    drives: z.boolean(),
  }),
  /** In place of the baseline's own repetitions: nothing of a verdict rests on them but the noise and the starting point. */
  "calibration.reused": reusedCalibration,
  "run.calibrated": z.strictObject({
    noise,
    /** Mean wall milliseconds by stage, and CPU milliseconds of one pipeline. */
    stageMs: z.record(z.string(), z.number()),
    pipelineWallMs: z.number(),
    pipelineCpuMs: z.number(),
  }),
  "run.paused": z.strictObject({ reason }),
  "run.resumed": z.strictObject({ reason }),
  /** Nothing new starts. `drain`: what is open may end; else it is cancelled. */
  "run.finishing": z.strictObject({ reason, drain: z.boolean() }),
  "run.suspended": z.strictObject({ reason, todo: z.string().max(2000) }),
  "run.finished": z.strictObject({ reason }),
  "run.cancelled": z.strictObject({ reason }),
  /** A finished run searches on under these caps, which count all that is spent. `afterHeldoutLook`: why, although somebody has looked. */
  "run.extended": z.strictObject({ budget: budgetLimits, stop: stopRule, reason, afterHeldoutLook: reason.nullable() }),
  /** All before this is another run's record, byte for byte; from here on it is a run of its own. Caps count what it inherited. */
  "run.forked": z.strictObject({
    from: z.strictObject({
      run: runName,
      /** The last event that was taken, its chain value, and the trial whose end it belongs to; null: the newest of that moment. */
      sequence: z.number().int().positive(),
      chain: z.string().length(64),
      trial: trialId.nullable(),
    }),
    configuration: forkConfiguration,
    reason,
    afterHeldoutLook: reason.nullable(),
  }),
  "run.blobs_pruned": z.strictObject({ digests: z.array(z.string().length(64)) }),

  "call.requested": z.strictObject({
    call: callId,
    role: z.string().max(40),
    researcher: z.string().min(1).max(8000),
    view: blobReference,
    /** Sequence of the last event that the view knows. */
    viewVersion: z.number().int().nonnegative(),
    base: trialId,
    comparator: trialId,
    expects: expected,
    plan: planId.nullable(),
    /** What the organization wants to remember about this step. */
    move: z.record(z.string(), z.union([z.string(), z.number(), z.null()])),
    seed: z.number().int().nonnegative(),
    bestAtView: trialId.nullable(),
    reservation: amount,
  }),
  "call.answered": z.strictObject({ call: callId, round: z.number().int().positive(), output: blobReference, usage, ...asked }),
  /** The output was not admitted. Not `final`: the same call is asked again with the violations. */
  "call.refused": z.strictObject({
    call: callId,
    round: z.number().int().positive(),
    output: blobReference.nullable(),
    violations: z.array(violation).min(1),
    final: z.boolean(),
    usage,
    ...asked,
  }),
  /** No output came. Not `final`: it is tried again, in the same round where the failure suspends the run. */
  "call.failed": z.strictObject({
    call: callId,
    round: z.number().int().positive(),
    kind: callFailure,
    message: reason,
    /** What whoever resumes the run has to do first. */
    todo: z.string().max(1500),
    final: z.boolean(),
    usage,
    ...asked,
  }),

  "session.opened": z.strictObject({
    session: sessionId,
    role: z.string().max(40),
    researcher: z.string().min(1).max(8000),
    base: trialId,
    viewVersion: z.number().int().nonnegative(),
    reopens: sessionId.nullable(),
  }),
  "session.turn_reserved": z.strictObject({ session: sessionId, turn: z.number().int().positive(), reservation: amount }),
  /** The model answered: what it used is booked, and its reservation is given back. */
  "session.turn_ended": z.strictObject({ session: sessionId, turn: z.number().int().positive(), usage, ...asked }),
  "session.tool_called": z.strictObject({
    session: sessionId,
    tool: z.string().max(80),
    stateVersion: z.number().int().nonnegative(),
    traffic: blobReference,
  }),
  "session.submitted": z.strictObject({ session: sessionId, plan: planId }),
  "session.closed": z.strictObject({ session: sessionId, reason, usage }),
  "session.interrupted": z.strictObject({ session: sessionId, reason, usage }),

  "plan.proposed": z.strictObject({
    plan: planId,
    by: z.union([
      z.strictObject({ call: callId }),
      z.strictObject({ session: sessionId }),
      z.strictObject({ submitter: z.string().max(80) }),
    ]),
    base: trialId,
    parents: z.array(trialId),
    respondsTo: z.array(trialId),
    hypothesis: z.string().max(20_000),
    /** Expected gain of the first metric, in its unit; positive is better. */
    expectedGain: z.number().nullable(),
    /** What the organization's schema holds beyond that: expectations, rejection conditions, controls. */
    commitment: z.record(z.string(), z.unknown()),
    /** Frozen here, before any measurement. */
    comparator: trialId,
  }),
  "plan.admitted": z.strictObject({ plan: planId }),
  "plan.refused": z.strictObject({ plan: planId, violations: z.array(violation).min(1) }),
  "plan.closed": z.strictObject({ plan: planId, outcome: z.enum(["completed", "failed", "cancelled"]) }),

  /** A candidate that nobody was asked for waits for its trial, the first in front. */
  "queue.added": z.strictObject({
    entry: queueEntryId,
    candidate: manifestReference,
    base: trialId,
    hypothesis: z.string().max(20_000),
    /** Who put it there, and where its candidate comes from. */
    submitter: z.string().min(1).max(80),
    /** What whoever put it there wants to find again in its trial: small, flat. */
    move: z.record(z.string(), z.union([z.string(), z.number(), z.null()])),
  }),
  "queue.removed": z.strictObject({ entry: queueEntryId, reason }),
  /** It waits in front of `before` from now on; null: at the end. */
  "queue.moved": z.strictObject({ entry: queueEntryId, before: queueEntryId.nullable() }),

  "trial.admitted": z.strictObject({
    trial: trialId,
    kind: z.enum(["baseline", "reference", "search"]),
    plan: planId.nullable(),
    candidate: manifestReference,
    base: trialId.nullable(),
    parents: z.array(trialId),
    move: z.record(z.string(), z.union([z.string(), z.number(), z.null()])),
    name: z.string().max(200).nullable(),
    bestAtView: trialId.nullable(),
    bestAtSubmission: trialId.nullable(),
  }),
  "measurement.requested": z.strictObject({
    measurement: measurementId,
    /** The trial that it is made for, and the trial whose candidate runs: they differ for `confirmation_of_leader`. */
    trial: trialId,
    subject: trialId,
    reason: z.enum(measurementReasons),
    purpose: z.enum(["in-loop", "confirmation"]),
    /** Pairs confirmations: equal `pair` and `round` of one trial share a seed. */
    pair: z.number().int().nonnegative(),
    round: z.number().int().nonnegative(),
    seed: z.number().int().nonnegative(),
  }),
  "attempt.started": z.strictObject({ measurement: measurementId, attempt: z.number().int().positive(), reservation: amount }),
  /** Written before the process starts: after a crash the executor is asked what became of it. */
  "stage.started": z.strictObject({
    measurement: measurementId,
    attempt: z.number().int().positive(),
    stage: z.string(),
    repeat: z.number().int().positive(),
  }),
  "stage.ended": z.strictObject({
    measurement: measurementId,
    attempt: z.number().int().positive(),
    stage: z.string(),
    repeat: z.number().int().positive(),
    outcome: stageOutcome,
    stdout: blobReference,
    stderr: blobReference,
  }),
  "attempt.ended": z.strictObject({
    measurement: measurementId,
    attempt: z.number().int().positive(),
    result: z.discriminatedUnion("kind", [
      z.strictObject({
        kind: z.literal("measured"),
        measured,
        /** The per-record results, a blob of RecordSet. */
        records: blobReference.nullable(),
        /** Declared outputs that were kept. */
        outputs: z.array(z.strictObject({ path: z.string(), content: blobReference })),
      }),
      z.strictObject({
        kind: z.literal("ended"),
        status: trialStatus,
        stage: z.string().nullable(),
        reason,
        values: metricValues,
      }),
      z.strictObject({ kind: z.literal("evaluator_failure"), stage: z.string(), reason }),
      /** Infrastructure: nothing was learnt about the candidate. */
      z.strictObject({ kind: z.literal("interrupted"), reason }),
    ]),
    usage,
  }),
  /** The rule would promote it: confirmations run. `against` is the leader that it must beat. */
  "trial.provisional": z.strictObject({ trial: trialId, against: trialId, round: z.number().int().nonnegative() }),
  "trial.confirmed": z.strictObject({
    trial: trialId,
    against: trialId,
    round: z.number().int().nonnegative(),
    verdict,
    /** Mean over confirmations alone: the first measurement, which made it a candidate, never enters. */
    estimate: metricValues,
  }),
  "trial.ended": z.strictObject({
    trial: trialId,
    status: trialStatus,
    stage: z.string().nullable(),
    reason,
    bestAtEnd: trialId.nullable(),
    /** Against the comparator that the plan froze. */
    comparatorVerdict: verdict.nullable(),
    /** Against the leader, by the rule in force. */
    leaderVerdict: verdict.nullable(),
    /** What rule `any` would have said, so that reports show both. */
    keptUnderAny: z.boolean(),
  }),
  "trial.retracted": z.strictObject({ trial: trialId, reason, dependents: z.array(trialId) }),
  /** The operator's hand on one trial; `free`: taken off. */
  "trial.steered": z.strictObject({ trial: trialId, steer: z.enum(["held", "pinned", "free"]), reason }),
  "leader.changed": z.strictObject({
    trial: trialId,
    previous: trialId.nullable(),
    estimate: metricValues,
    cause: z.enum(["calibration", "promotion", "retraction"]),
  }),

  "knowledge.committed": z.strictObject({
    kind: z.string().max(60),
    version: z.number().int().positive(),
    /** Commit key: one version per key, however often it is asked for. */
    key: z.string().max(200),
    sources: z.array(z.string().max(200)),
    content: blobReference,
  }),
  "wake_up.scheduled": z.strictObject({ wakeUp: wakeUpId, dueAtActiveMs: z.number().nonnegative() }),
  "wake_up.fired": z.strictObject({ wakeUp: wakeUpId }),
  "drift.noticed": z.strictObject({
    measurement: measurementId,
    value: z.number(),
    mean: z.number(),
    deviations: z.number().nullable(),
    message: reason,
  }),
  "operator.acted": z.strictObject({ action: z.string().max(60), reason, subject: z.string().max(200).nullable() }),
} as const;

export type EventType = keyof typeof eventSchemas;
export type EventData<T extends EventType> = z.infer<(typeof eventSchemas)[T]>;
/** An event that this build knows, typed by its name. */
export type RunEvent = { [T in EventType]: { readonly type: T; readonly data: EventData<T> } }[EventType];
export type StoredRunEvent = RunEvent & { readonly sequence: number; readonly at: number };

/** Current version of every event type; those not named are at 1. */
const currentVersions: Partial<Record<EventType, number>> = {
  "run.started": 2,
  "run.span_opened": 2,
  "call.answered": 2,
  "call.refused": 2,
  "call.failed": 2,
};

/** From version n to n + 1, by type: `upcasters["trial.ended"][1]` makes a version 2 out of a version 1. */
const upcasters: Partial<Record<EventType, Readonly<Record<number, (data: unknown) => unknown>>>> = {
  "run.started": { 1: withReservationsByRole },
  "run.span_opened": { 1: (data) => ({ ...(data as object), drives: true }) },
  "call.answered": { 1: withoutModel },
  "call.refused": { 1: withoutModel },
  "call.failed": { 1: (data) => withoutModel({ ...(data as object), todo: "" }) },
};

/** Version 1 had one reservation for every role, and knew command researchers alone, which have no settings and no sessions. */
function withReservationsByRole(data: unknown): unknown {
  const { configuration } = data as { configuration: { callReservation: unknown; limits: object } };
  const { callReservation, limits, ...rest } = configuration;
  return {
    configuration: {
      ...rest,
      callReservations: { "*": callReservation },
      researcherSettings: {},
      limits: { ...limits, sessionTurns: 1 },
      stop: { target: null, patience: null },
    },
  };
}

/** Version 1 knew command researchers alone. */
function withoutModel(data: unknown): unknown {
  return { ...(data as object), model: null, traffic: null };
}

export function currentVersion(type: EventType): number {
  return currentVersions[type] ?? 1;
}

export function isEventType(type: string): type is EventType {
  return Object.hasOwn(eventSchemas, type);
}

/**
 * Refuses an event that no reader would accept, before it is folded or written.
 * @throws UnknownRecordError
 */
export function assertShape(event: RunEvent): void {
  const parsed = eventSchemas[event.type].safeParse(event.data);
  if (!parsed.success)
    throw new UnknownRecordError({
      expected: `the shape of ${event.type}`,
      found: z.prettifyError(parsed.error),
      where: "an event about to be recorded",
    });
}

/**
 * A stored event as this build knows it: upcast to the current version and checked.
 * @throws UnknownRecordError for an unknown type, a newer version or another shape
 */
export function parseEvent(stored: StoredEvent): StoredRunEvent {
  const where = `ledger event ${stored.sequence}`;
  if (!isEventType(stored.type)) {
    throw new UnknownRecordError({
      expected: "an event that this version knows",
      found: `type ${JSON.stringify(stored.type)}`,
      where,
      todo: "It may come from a newer trialist: update, then try again.",
    });
  }
  const current = currentVersion(stored.type);
  if (stored.version > current || stored.version < 1) {
    throw new UnknownRecordError({
      expected: `${stored.type} at version ${current} or older`,
      found: `version ${stored.version}`,
      where,
      todo: "Update trialist, then try again.",
    });
  }
  let data = stored.data;
  for (let version = stored.version; version < current; version++) data = upcasters[stored.type]?.[version]?.(data) ?? data;
  const parsed = eventSchemas[stored.type].safeParse(data);
  if (!parsed.success) {
    throw new UnknownRecordError({ expected: `the shape of ${stored.type}`, found: z.prettifyError(parsed.error), where });
  }
  return { type: stored.type, data: parsed.data, sequence: stored.sequence, at: stored.at } as StoredRunEvent;
}
