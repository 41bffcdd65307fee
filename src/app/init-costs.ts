import type { Environment } from "../core/protocol/environment.js";

const minute = 60_000;
const night = 8 * 60 * minute;
const mebibyte = 2 ** 20;

/** What a search will take when every trial takes as long as the baseline did; one trial at a time. */
export interface Costs {
  readonly trialMs: number;
  /** The baseline's repetitions before the search. */
  readonly calibrationMs: number;
  readonly repetitions: number;
  /** A trial that looks better: its measurement, and each confirmation beside the leader. */
  readonly confirmedTrialMs: number;
  /** 0 where the rule confirms nothing. */
  readonly confirmations: number;
  /** Trials in eight hours after calibration, none of them confirmed. */
  readonly nightTrials: number;
}

export function costsOf(environment: Pick<Environment, "noise" | "promotion">, trialMs: number): Costs {
  const { noise, promotion } = environment;
  const confirmations = promotion.rule === "confirmed" ? promotion.confirmations : 0;
  const calibrationMs = noise.calibrate * trialMs;
  const remeasured = noise.remeasureEvery === 0 ? 0 : 1 / noise.remeasureEvery;
  return {
    trialMs,
    calibrationMs,
    repetitions: noise.calibrate,
    confirmedTrialMs: (1 + 2 * confirmations) * trialMs,
    confirmations,
    nightTrials: Math.max(0, Math.floor((night - calibrationMs) / (Math.max(1, trialMs) * (1 + remeasured)))),
  };
}

/** Limits as environment.yaml writes them. */
export interface SuggestedLimits {
  readonly wall: string;
  readonly memory: string;
}

/** Three times the measured time and twice the memory, rounded up, and never so little that a busy machine ends a good trial. */
export function suggestedLimits(measured: { readonly wallMs: number; readonly peakMemoryBytes: number }): SuggestedLimits {
  return {
    wall: durationText(Math.max(30_000, 3 * measured.wallMs)),
    memory: sizeText(Math.max(512 * mebibyte, 2 * measured.peakMemoryBytes)),
  };
}

function durationText(ms: number): string {
  if (ms <= minute) return `${Math.ceil(ms / 10_000) * 10} s`;
  if (ms <= 60 * minute) return `${Math.ceil(ms / minute)} min`;
  return ms <= 5 * 60 * minute ? `${Math.ceil(ms / (10 * minute)) * 10} min` : `${Math.ceil(ms / (60 * minute))} h`;
}

function sizeText(bytes: number): string {
  const steps = Math.ceil(bytes / (256 * mebibyte));
  return bytes <= 4096 * mebibyte && steps % 4 !== 0 ? `${steps * 256} MiB` : `${Math.ceil(bytes / (1024 * mebibyte))} GiB`;
}
