import { z } from "zod";
import type { NewBlob } from "../ports/ledger.js";
import type { FailureKind } from "../ports/researcher.js";
import type { Amount } from "./budget.js";
import type { ReusedCalibration } from "./calibration.js";
import type { CandidateManifest } from "./candidate.js";
import type { EventData, RunEvent, Violation } from "./events.js";
import type { BlobReference, ManifestReference } from "./ids.js";
import type { RecordSet } from "./measurement.js";
import type { ModelUse } from "./model-use.js";
import type { RunConfiguration } from "./run.js";

/** A commitment made before any measurement. */
export interface PlanProposal {
  readonly hypothesis: string;
  /** Expected gain of the first metric, in its unit; positive is better. */
  readonly expectedGain: number | null;
  readonly respondsTo: readonly string[];
  readonly commitment: Readonly<Record<string, unknown>>;
}

/** A candidate ready for admission. Its blobs are stored already. */
export interface CandidateProposal {
  readonly candidate: ManifestReference;
  readonly manifest: CandidateManifest;
  /** Paths that the proposal named, changed or not. */
  readonly edited: readonly string[];
}

/** A plan with its candidate: what `tree` asks for, and what sessions submit. */
export interface Submission extends PlanProposal, CandidateProposal {}

/** A role's output, read. Which kind is admissible was settled when the call was requested. */
export type Answer =
  | ({ readonly kind: "proposal" } & Submission)
  | ({ readonly kind: "plan" } & PlanProposal)
  | ({ readonly kind: "candidate" } & CandidateProposal)
  | {
      readonly kind: "knowledge";
      readonly subject: string;
      readonly key: string;
      readonly sources: readonly string[];
      readonly content: BlobReference;
    }
  | { readonly kind: "unreadable"; readonly violations: readonly Violation[] };

/** What a role call used, and of which model. */
interface Bill {
  readonly usage: Amount;
  readonly model: ModelUse | null;
  /** Blob of what went over the wire. */
  readonly traffic: BlobReference | null;
}

/** Reference rows beside the baseline. */
export interface ReferenceCandidate {
  readonly name: string;
  readonly candidate: ManifestReference;
}

/** A candidate that somebody wants measured. Its blobs are stored already. */
export interface QueuedCandidate extends Pick<CandidateProposal, "candidate"> {
  readonly base: string;
  readonly hypothesis: string;
  /** Who wants it, in a few words: `operator`, or where the candidate comes from. */
  readonly submitter: string;
  readonly move: Readonly<Record<string, string | number | null>>;
}

/**
 * Everything that can be asked of a run, imperative. `decide` answers with events or refuses. Time, seeds and results
 * come in here; the core has none of its own. `at`: milliseconds since 1970.
 */
export type Command = { readonly at: number } & (
  | {
      readonly type: "start";
      readonly configuration: RunConfiguration;
      readonly baseline: ManifestReference;
      readonly references: readonly ReferenceCandidate[];
      /** Candidates that are measured before anything that the organization wants; whoever starts the run has checked them. */
      readonly queue: readonly QueuedCandidate[];
      /** Null or left out: the baseline is measured. */
      readonly calibration?: ReusedCalibration | null;
    }
  | { readonly type: "open_span"; readonly epoch: number; readonly previousEndedAt: number | null; readonly drives: boolean }
  /** Ask the organization for its next move. */
  | { readonly type: "advance" }
  | ({ readonly type: "answer_call"; readonly call: string; readonly output: BlobReference; readonly answer: Answer } & Bill)
  | ({
      readonly type: "fail_call";
      readonly call: string;
      readonly kind: FailureKind;
      readonly message: string;
      /** What the person who resumes has to do first; empty where the kind says enough. */
      readonly todo: string;
    } & Bill)
  /** The way in for sessions, MCP clients and people: nobody asked for it. */
  | {
      readonly type: "submit";
      readonly by: { readonly session: string } | { readonly submitter: string };
      readonly base: string;
      readonly submission: Submission;
    }
  /** Puts a candidate into the queue, in front of `before`, or at its end. */
  | ({ readonly type: "enqueue"; readonly before: string | null; readonly reason: string } & QueuedCandidate & CandidateProposal)
  | {
      readonly type: "open_session";
      readonly role: string;
      readonly researcher: string;
      readonly base: string;
      readonly reopens: string | null;
    }
  | { readonly type: "reserve_turn"; readonly session: string; readonly reservation: Amount }
  | ({ readonly type: "end_turn"; readonly session: string } & Bill)
  | { readonly type: "record_tool"; readonly session: string; readonly tool: string; readonly traffic: BlobReference }
  | {
      readonly type: "close_session";
      readonly session: string;
      readonly reason: string;
      readonly interrupted: boolean;
      readonly usage: Amount;
    }
  | { readonly type: "start_attempt"; readonly measurement: string }
  | { readonly type: "start_stage"; readonly measurement: string; readonly stage: string; readonly repeat: number }
  | {
      readonly type: "end_stage";
      readonly measurement: string;
      readonly stage: string;
      readonly repeat: number;
      readonly outcome: EventData<"stage.ended">["outcome"];
      readonly stdout: BlobReference;
      readonly stderr: BlobReference;
    }
  | {
      readonly type: "end_attempt";
      readonly measurement: string;
      readonly result: EventData<"attempt.ended">["result"];
      readonly usage: Amount;
    }
  /** Judge a trial whose measurements have ended. `records`: the per-record results that `recordsNeeded` names, by blob. */
  | { readonly type: "adjudicate"; readonly trial: string; readonly records: ReadonlyMap<string, RecordSet> }
  | { readonly type: "fire_wake_up"; readonly wakeUp: string }
  | {
      readonly type: "commit_knowledge";
      readonly kind: string;
      readonly key: string;
      readonly sources: readonly string[];
      readonly content: BlobReference;
    }
  /** Go on with a finished run. The caps are totals. */
  | ({ readonly type: "extend" } & EventData<"run.extended">)
  /** Make this record a run of its own: what is open in it is its source's. */
  | ({ readonly type: "fork" } & EventData<"run.forked">)
  /** A cap leaves no room for what is due. */
  | { readonly type: "exhaust"; readonly cap: string }
  | { readonly type: "conclude" }
  | { readonly type: "suspend"; readonly reason: string; readonly todo: string }
  | OperatorCommand
);

type WithoutTime<C> = C extends unknown ? Omit<C, "at"> : never;
/** A command before somebody looked at the clock. */
export type TimelessCommand = WithoutTime<Command>;

/** What a person may ask from another process; it is logged with its reason. */
export const operatorCommand = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("pause"), reason: z.string().min(1).max(2000) }),
  z.strictObject({ type: z.literal("resume"), reason: z.string().min(1).max(2000) }),
  z.strictObject({ type: z.literal("finish"), reason: z.string().min(1).max(2000) }),
  z.strictObject({ type: z.literal("cancel"), reason: z.string().min(1).max(2000) }),
  /** A word to researchers: shown from the next call on. */
  z.strictObject({ type: z.literal("note"), reason: z.string().min(1).max(2000) }),
  z.strictObject({ type: z.literal("dequeue"), entry: z.string().max(20), reason: z.string().min(1).max(2000) }),
  z.strictObject({
    type: z.literal("requeue"),
    entry: z.string().max(20),
    before: z.string().max(20).nullable(),
    reason: z.string().min(1).max(2000),
  }),
  /** Ends a trial that waits for its measurement, before anything of it runs. */
  z.strictObject({ type: z.literal("cancel_trial"), trial: z.string().max(20), reason: z.string().min(1).max(2000) }),
  /** Nothing starts from it for now / the next improvements start from it / as if nobody had said anything. */
  z.strictObject({ type: z.literal("hold"), trial: z.string().max(20), reason: z.string().min(1).max(2000) }),
  z.strictObject({ type: z.literal("pin"), trial: z.string().max(20), reason: z.string().min(1).max(2000) }),
  z.strictObject({ type: z.literal("release"), trial: z.string().max(20), reason: z.string().min(1).max(2000) }),
  z.strictObject({ type: z.literal("retract"), trial: z.string().max(20), reason: z.string().min(1).max(2000) }),
  /** Blobs that are about to be removed. */
  z.strictObject({
    type: z.literal("prune_blobs"),
    digests: z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(500),
    reason: z.string().min(1).max(2000),
  }),
]);
export type OperatorCommand = z.infer<typeof operatorCommand>;

/** What `decide` answers: the events, and the blobs that they name and that nobody has stored yet. */
export interface Decision {
  readonly events: readonly RunEvent[];
  readonly blobs: readonly NewBlob[];
}
