import type { Amount } from "../protocol/budget.js";
import type { Violation } from "../protocol/events.js";

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
}

export interface RoleAnswer {
  /** Exactly what came back, before anybody read it. */
  readonly raw: Uint8Array;
  readonly usage: Amount;
}

/** No answer came, and why. `usage`: what it cost all the same. */
export class ResearcherFailedError extends Error {
  override readonly name = "ResearcherFailedError";
  constructor(
    readonly kind: "researcher_failed" | "timed_out" | "no_answer" | "infrastructure",
    message: string,
    readonly usage: Amount,
    options?: { cause?: unknown },
  ) {
    super(message, options);
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
