import type { Amount } from "../protocol/budget.js";
import type { CallFailure } from "../protocol/call-failure.js";
import type { Violation } from "../protocol/events.js";
import type { ModelUse } from "../protocol/model-use.js";

/** A role's question in words, for whoever reads words: bounded in bytes, whatever the age of the run. */
export interface RolePrompt {
  readonly system: string;
  readonly user: string;
  /** The shape of the answer: its name, and a JSON schema in the subset that every provider takes. */
  readonly answer: { readonly name: string; readonly schema: Readonly<Record<string, unknown>> };
  /** What came the round before, and what was wrong with it; null in round 1. */
  readonly repair: { readonly answer: string; readonly message: string } | null;
}

/** One question to a researcher: one frozen view in, one output out. */
export interface RoleRequest {
  /** `c12`, and the round from 1: together they name the question for ever, so that an answer lost in a crash can be found. */
  readonly call: string;
  readonly round: number;
  readonly role: string;
  /** All randomness of the answer comes from here. */
  readonly seed: number;
  /** Why the answer of the round before was refused; empty in round 1. */
  readonly violations: readonly Violation[];
  /** The view with its contents filled in; JSON. */
  readonly view: unknown;
  /**
   * The same in words, built when it is asked for.
   * `room`: UTF-8 bytes that system and user text should hold at most, for a model that takes in less; sections shrink in proportion.
   */
  readonly prompt: (room?: number) => RolePrompt;
  /** What this call may still use; infinite where the run has no cap. Nothing whose worst case passes it may be started. */
  readonly allowance: Amount;
}

/** What went over the wire to a model and back, without keys; JSON. */
export interface ModelRecord {
  readonly use: ModelUse;
  readonly traffic: Uint8Array;
}

export interface RoleAnswer {
  /** Exactly what came back, before anybody read it. */
  readonly raw: Uint8Array;
  readonly usage: Amount;
  /** Null where no language model was asked by us. */
  readonly model: ModelRecord | null;
}

/** A call that nobody wants any more does not fail: its answer is dropped. */
export type FailureKind = Exclude<CallFailure, "cancelled">;

/** No answer came, and why. `usage`: what it cost all the same. */
export class ResearcherFailedError extends Error {
  override readonly name = "ResearcherFailedError";
  readonly todo: string;
  readonly model: ModelRecord | null;
  constructor(
    readonly kind: FailureKind,
    message: string,
    readonly usage: Amount,
    options?: { readonly cause?: unknown; readonly todo?: string; readonly model?: ModelRecord | null },
  ) {
    super(message, options);
    this.todo = options?.todo ?? "";
    this.model = options?.model ?? null;
  }
}

/** Reason of an abort: the runner leaves, its run goes on later. */
export const leaving = "leaving";

/** Whoever answers role calls: a command, a language model, a coding agent, a recording. */
export interface Researcher {
  readonly name: string;
  /**
   * `signal`: nobody waits for the answer any more. With `leaving` for a reason the run goes on in another process, which
   * asks the same again: what goes on by itself may then be found.
   * @throws ResearcherFailedError when no answer came
   */
  answer(request: RoleRequest, signal: AbortSignal): Promise<RoleAnswer>;
  /** The answer, or its failure, is on record: what was kept to find it after a crash may go. */
  settled?(request: Pick<RoleRequest, "call" | "round">): Promise<void>;
}
