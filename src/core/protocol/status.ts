import { z } from "zod";
import { TrialistError } from "./errors.js";
import type { DeclaredOutput, LimitName, StageOutcome } from "./outcome.js";

/** The typed end of a trial. */
export const trialStatuses = [
  "keep",
  "discard",
  "inadmissible",
  "preflight_failed",
  "crashed",
  "timed_out",
  "over_budget",
  "over_size",
  "gate_missed",
  "no_result",
  "disqualified",
  "infrastructure_error",
  "cancelled",
] as const;
export const trialStatus = z.enum(trialStatuses);
export type TrialStatus = z.infer<typeof trialStatus>;

/** What every organization may ask about a status; `excluded` trials appear in no rate and are shown apart. */
export const statusClasses: Readonly<Record<TrialStatus, "valid" | "invalid" | "excluded">> = {
  keep: "valid",
  discard: "valid",
  inadmissible: "invalid",
  preflight_failed: "invalid",
  crashed: "invalid",
  timed_out: "invalid",
  over_budget: "invalid",
  over_size: "invalid",
  gate_missed: "invalid",
  no_result: "invalid",
  disqualified: "invalid",
  infrastructure_error: "excluded",
  cancelled: "excluded",
};

/** The name is no status. @throws UnknownStatusError */
export class UnknownStatusError extends TrialistError {
  readonly kind = "corrupt";
}

export function parseStatus(name: string): TrialStatus {
  const parsed = trialStatus.safeParse(name);
  if (parsed.success) return parsed.data;
  throw new UnknownStatusError({ expected: `one of ${trialStatuses.join(", ")}`, found: JSON.stringify(name), where: "trial status" });
}

/** What the evaluator's file said, once it was read and checked. */
export type EvaluatorVerdict =
  | { readonly kind: "measured" }
  /** The candidate's result is no valid measurement: a missing id, NaN, a string. */
  | { readonly kind: "invalid"; readonly reason: string }
  | { readonly kind: "disqualified"; readonly reason: string }
  /** The evaluator itself broke its contract: no file, no JSON, unknown members. */
  | { readonly kind: "broken"; readonly reason: string };

/** What follows from one stage's end. */
export type StageJudgement =
  | { readonly kind: "continue" }
  | { readonly kind: "ended"; readonly status: TrialStatus; readonly reason: string }
  | { readonly kind: "evaluator_failure"; readonly reason: string };

export interface JudgedStage {
  readonly name: string;
  readonly trust: "candidate" | "trainer" | "evaluator" | "interactive" | "held-out";
  readonly preflight: boolean;
}

const limitWords: Readonly<Record<LimitName, string>> = {
  wall: "wall-clock",
  cpu: "CPU-time",
  memory: "memory",
  processes: "process",
  disk: "disk",
  output: "output",
};

/**
 * The one table from how a stage ended to a status. The first failing stage decides. It reads exit code, signal, limit,
 * declared outputs and the evaluator's file, never what was printed.
 */
export function judgeStage(stage: JudgedStage, outcome: StageOutcome, verdict: EvaluatorVerdict | null): StageJudgement {
  return stage.trust === "candidate" || stage.trust === "interactive"
    ? judgeCandidateStage(stage, outcome)
    : judgeTrustedStage(stage, outcome, verdict);
}

function judgeCandidateStage(stage: JudgedStage, outcome: StageOutcome): StageJudgement {
  if (outcome.limit === "wall") return ended("timed_out", `${stage.name} reached its wall-clock limit`);
  if (outcome.limit !== null) return ended("over_budget", `${stage.name} reached its ${limitWords[outcome.limit]} limit`);
  const failed = stage.preflight ? "preflight_failed" : "crashed";
  if (outcome.signal !== null) return ended(failed, `${stage.name} was ended by ${outcome.signal}`);
  if (outcome.exitCode !== 0) return ended(failed, `${stage.name} exited with code ${outcome.exitCode}`);
  const bad = outcome.outputs.find((output) => output.state !== "present");
  if (bad !== undefined) return ended(bad.state === "too_large" ? "over_size" : "no_result", describeOutput(stage.name, bad));
  return { kind: "continue" };
}

function describeOutput(stage: string, output: DeclaredOutput): string {
  if (output.state === "missing") return `${stage} ended well without writing ${output.path}`;
  const found = output.found === undefined ? output.state.replaceAll("_", " ") : output.found;
  return `${stage} left ${found} where the regular file ${output.path} was declared`;
}

function judgeTrustedStage(stage: JudgedStage, outcome: StageOutcome, verdict: EvaluatorVerdict | null): StageJudgement {
  const failure = (reason: string): StageJudgement => ({ kind: "evaluator_failure", reason });
  if (outcome.limit !== null) return failure(`${stage.name} reached its ${limitWords[outcome.limit]} limit`);
  if (outcome.signal !== null) return failure(`${stage.name} was ended by ${outcome.signal}`);
  if (outcome.exitCode !== 0) return failure(`${stage.name} exited with code ${outcome.exitCode}`);
  if (verdict === null || verdict.kind === "measured") return { kind: "continue" };
  if (verdict.kind === "broken") return failure(verdict.reason);
  return ended(verdict.kind === "invalid" ? "no_result" : "disqualified", verdict.reason);
}

/** What may be wrong with a candidate although every stage that ran ended well. */
const statusByFault = {
  /** Its files collide with the environment's. */
  no_place: "inadmissible",
  /** A declared artifact passes a gate's cap. */
  oversized: "over_size",
  /** A metric that the environment takes from outside the evaluator is not there. */
  metric_missing: "no_result",
  gate_missed: "gate_missed",
} as const satisfies Readonly<Record<string, TrialStatus>>;

export type CandidateFault = keyof typeof statusByFault;

/** The other half of the table: from a fault that no stage's end shows to a status. */
export function statusOfFault(fault: CandidateFault): TrialStatus {
  return statusByFault[fault];
}

function ended(status: TrialStatus, reason: string): StageJudgement {
  return { kind: "ended", status, reason };
}
