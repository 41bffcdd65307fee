import type { RunState, Trial } from "../../core/harness/state.js";
import type { Evidence } from "./evidence.js";
import { range, signed } from "./numbers.js";
import { resultWords } from "./opening.js";
import { leaderGain } from "./summary.js";

export function statusOf(trial: Trial): string {
  const status = trial.phase === "ended" ? (trial.status ?? "") : trial.phase;
  return trial.retracted ? `${status}, **retracted**` : status;
}

export function verdictCell(state: RunState, trial: Trial, evidence: Evidence): string {
  const gain = trial.kind === "search" ? leaderGain(state, trial, evidence) : null;
  if (gain === null) return "";
  const bounds = gain.lower === null && gain.upper === null ? "" : ` (${range(gain.lower, gain.upper, signed)})`;
  return `${resultWords[gain.result]}${gain.over === null ? "" : ` over ${gain.over}`}: ${signed(gain.value)}${bounds}`;
}
