import { z } from "zod";

/**
 * Why no answer came. The first five are the researcher's own: its call is asked again, a bounded number of times. `budget`: what the round may still use does not cover another request. `cancelled`: nobody wanted
 * it any more. The others are no failure of the search and would only come again: the run suspends, and the same
 * question is asked when it is resumed.
 */
export const callFailure = z.enum([
  "researcher_failed",
  "timed_out",
  "no_answer",
  "infrastructure",
  "budget",
  "cancelled",
  "unavailable",
  "quota_exhausted",
  "key_refused",
  "context_overflow",
  "model_unknown",
  "request_refused",
]);
export type CallFailure = z.infer<typeof callFailure>;

const suspending: ReadonlySet<CallFailure> = new Set([
  "unavailable",
  "quota_exhausted",
  "key_refused",
  "context_overflow",
  "model_unknown",
  "request_refused",
]);

/** Whether a failure of this kind suspends the run with its call open. */
export function suspendsRun(kind: CallFailure): boolean {
  return suspending.has(kind);
}
