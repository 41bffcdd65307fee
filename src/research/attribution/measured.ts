import { confirmationPairs } from "../../core/harness/decide/adjudicate.js";
import { configurationOf, type RunState, type Trial } from "../../core/harness/state.js";
import { primaryMetric } from "../../core/protocol/measurement.js";
import { statusClasses } from "../../core/protocol/status.js";
import { oneSidedP } from "../../core/statistics/multiple.js";
import { marginOf } from "../../core/statistics/student.js";
import { pairedEstimate } from "../../core/statistics/verdict.js";
import { trialRecords } from "../engine/trial-records.js";
import type { CandidateBlobs } from "./changes.js";
import type { Gain } from "./document.js";

/** What the list run says of one candidate beside its baseline. */
export type Measured =
  | { readonly kind: "open" }
  /** It ended without a comparison. `isInvalid`: by its own fault, which says that the baseline's recipe needs what it lacks. */
  | { readonly kind: "failed"; readonly isInvalid: boolean; readonly reason: string }
  /** Of the baseline over the candidate: of having what the candidate lacks. The p are one-sided. */
  | { readonly kind: "compared"; readonly gain: Gain; readonly pBetter: number | null; readonly pWorse: number | null };

/** Read from the recorded measurements, so that it can be had at every level; at the run's own it is the recorded verdict. */
export function measuredOf(state: RunState, trial: Trial | undefined, blobs: CandidateBlobs): Measured {
  if (trial === undefined || trial.phase !== "ended") return { kind: "open" };
  if (trial.leaderVerdict === null || trial.confirmation === null || trial.retracted) {
    const isInvalid = trial.status !== null && statusClasses[trial.status] === "invalid" && !trial.retracted;
    const reason = trial.retracted ? "its measurement was retracted" : `${trial.status ?? "ended"}: ${trial.reason}`;
    return { kind: "failed", isInvalid, reason };
  }
  const { environment, promotion } = configurationOf(state);
  const pairs = confirmationPairs(state, trial, trialRecords(state, trial.id, blobs));
  const { known, terms } = pairedEstimate(pairs, primaryMetric(environment).direction, {
    deterministic: state.noise?.deterministic ?? false,
  });
  const value = without0(-known.gain);
  if (terms === null) return { kind: "compared", gain: { value, lower: null, upper: null }, pBetter: null, pWorse: null };
  const half = marginOf(terms, promotion.level);
  return {
    kind: "compared",
    gain: { value, lower: without0(value - half), upper: without0(value + half) },
    pBetter: oneSidedP(value, terms),
    pWorse: oneSidedP(-value, terms),
  };
}

/** No "-0" in documents. */
function without0(value: number): number {
  return value === 0 ? 0 : value;
}
