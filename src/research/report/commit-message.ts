import type { RunState, Trial } from "../../core/harness/state.js";
import { countedValue, gainOverBaseline, metricOf } from "../../core/harness/trial-values.js";
import type { Evidence } from "./evidence.js";
import { oneLine } from "./hostile-text.js";
import { stepOf } from "./lineage.js";
import { count, coverage, duration, money, plural, range, signed, significant } from "./numbers.js";
import { resultWords } from "./opening.js";
import { leaderGain, retractedBelow } from "./summary.js";
import { valueInterval } from "./value-interval.js";

/** Where the ledger stood when the evidence was read. */
export interface LedgerHead {
  readonly chain: string;
  readonly events: number;
}

/** A candidate's evidence as the message of a commit: a subject, then one `Key: value` line per fact. Nothing in it spans lines. */
export function commitMessage(run: string, state: RunState, trial: Trial, head: LedgerHead, evidence: Evidence = {}): string {
  const facts: readonly (readonly [string, string])[] = [
    ["Run", run],
    ["Trial", `${trial.id}, ${trial.status ?? trial.phase}${trial.retracted ? ", RETRACTED" : ""}`],
    ...hypothesisOf(trial, evidence),
    ...builtOnOf(state, trial),
    ["Candidate", trial.candidate.blob],
    ...environmentOf(state),
    ...valuesOf(state, trial, evidence),
    ...verdictOf(state, trial, evidence),
    ...cautionsOf(state, trial),
    ["Spend of the run", spendOf(state)],
    ["Ledger", `${head.chain} after ${plural(head.events, "event")}`],
    ["See", `trialist show ${run} ${trial.id}`],
  ];
  return `${subjectOf(state, trial)}\n\n${facts.map(([key, value]) => `${key}: ${oneLine(value)}`).join("\n")}\n`;
}

function subjectOf(state: RunState, trial: Trial): string {
  const words = oneLine(trial.hypothesis || trial.name || `candidate of ${trial.id}`, 50);
  const metric = metricOf(state);
  const value = countedValue(state, trial);
  return metric === null || value === null
    ? `trialist: ${words}`
    : `trialist: ${words} (${oneLine(metric.name, 20)} ${significant(value, 4)})`;
}

function hypothesisOf(trial: Trial, evidence: Evidence): [string, string][] {
  const words = evidence.timeline?.trials.get(trial.id)?.hypothesis || trial.hypothesis;
  return words === "" ? [] : [["Hypothesis", oneLine(words, 1000)]];
}

/** What it was built on that was not kept itself: what those changed is part of the commit. */
function builtOnOf(state: RunState, trial: Trial): [string, string][] {
  if (trial.kind !== "search") return [];
  const below = stepOf(state, trial.id).slice(0, -1);
  return below.map(({ id, status, hypothesis }) => ["Built on", `${id}, ${status ?? "open"}: ${oneLine(hypothesis, 200)}`]);
}

function environmentOf({ configuration }: RunState): [string, string][] {
  return configuration === null ? [] : [["Environment", `${configuration.environment.name} ${configuration.environmentDigest}`]];
}

function valuesOf(state: RunState, trial: Trial, evidence: Evidence): [string, string][] {
  const metric = metricOf(state);
  if (metric === null) return [];
  const { noise } = state;
  const baseline = noise === null ? "not measured" : `${significant(noise.mean, 7)}, mean of ${plural(noise.n, "repetition")}`;
  const interval = valueInterval(state, trial, evidence.blob);
  const around =
    interval === null ? "no interval" : `${coverage(state.configuration?.promotion.level ?? 0)} interval ${range(...interval)}`;
  const value = countedValue(state, trial);
  const stands = trial.estimate === null ? "one measurement, not confirmed" : "mean over fresh seeds";
  return [
    ["Metric", `${metric.name}, ${metric.direction}`],
    ["Baseline", baseline],
    ["Estimate", value === null ? "none: it was not measured" : `${significant(value, 7)}, ${stands}, ${around}`],
    ...(trial.kind === "baseline" ? [] : ([["Gain over baseline", signed(gainOverBaseline(state, value))]] as [string, string][])),
  ];
}

function verdictOf(state: RunState, trial: Trial, evidence: Evidence): [string, string][] {
  const verdict = leaderGain(state, trial, evidence);
  const promotion = state.configuration?.promotion;
  const confirmations = trial.results.filter(
    (result) => result.reason === "confirmation" && result.round === trial.confirmation?.round,
  ).length;
  const bounds = (of: NonNullable<typeof verdict>): string =>
    of.lower === null && of.upper === null ? "no interval" : `${coverage(of.level)} interval ${range(of.lower, of.upper, signed)}`;
  return [
    [
      "Verdict",
      verdict === null
        ? "none"
        : `${resultWords[verdict.result]}: gain ${signed(verdict.value)} over ${verdict.over ?? "the leader of its time"}, ${bounds(verdict)}, ${verdict.basis.replaceAll("_", " ")}`,
    ],
    ...(promotion === undefined ? [] : ([["Rule", `${promotion.rule}, level ${promotion.level}`]] as [string, string][])),
    ["Confirmations", String(confirmations)],
  ];
}

function cautionsOf(state: RunState, trial: Trial): [string, string][] {
  const rests = retractedBelow(state, trial);
  return [
    ...(trial.selfReported ? ([["Caution", "SELF-REPORTED: the candidate itself printed these values"]] as [string, string][]) : []),
    ...(state.configuration?.sandbox === "none" ? ([["Caution", "measured WITHOUT a sandbox"]] as [string, string][]) : []),
    ...(rests.length === 0 ? [] : ([["Caution", `built on or compared with ${rests.join(", ")}, retracted since`]] as [string, string][])),
  ];
}

function spendOf({ budget, searchTrialsEnded, activeMs }: RunState): string {
  const { costUsd, tokens, computeMs } = budget.spent;
  return `${plural(searchTrialsEnded, "trial")}, ${duration(computeMs)} CPU, ${duration(activeMs)} active, ${money(costUsd)}, ${count(tokens)} tokens`;
}
