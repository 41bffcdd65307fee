import { isOver } from "../../core/harness/due.js";
import { type RunState, type Trial, type TrialResult, trialNamed } from "../../core/harness/state.js";
import { countedValue, gainOverBaseline, metricOf } from "../../core/harness/trial-values.js";
import { TrialistError } from "../../core/protocol/errors.js";
import { placeOf } from "./continuation-text.js";
import { decode, type Evidence, kept, manifestFor } from "./evidence.js";
import { failureHint } from "./failure-hint.js";
import { oneLine } from "./hostile-text.js";
import { bytes, coverage, duration, plural, range, signed, significant } from "./numbers.js";
import { resultWords } from "./opening.js";
import { ruleErrorsText } from "./rule-errors-text.js";
import { leaderGain, retractedBelow } from "./summary.js";
import { field, type Paint, plainPaint, table, tail } from "./terminal.js";

/** The run has no such trial. */
export class UnknownTrialError extends TrialistError {
  readonly kind = "usage";
}

/** Lines of a failing stage's output. */
const shownOutput = 30;

/** The text of `trialist show RUN`: every trial on a line, in ledger order. */
export function showRun(state: RunState, paint: Paint = plainPaint): string {
  const trials = Object.values(state.trials);
  if (trials.length === 0) return "No trial yet: the run has not started.\n";
  const rows = trials.map((trial) => [
    state.leader?.trial === trial.id ? "*" : "",
    trial.id,
    trial.base ?? "",
    phaseOrStatus(state, trial),
    significant(countedValue(state, trial)),
    trial.kind === "baseline" ? "" : signed(gainOverBaseline(state, countedValue(state, trial))),
    oneLine(summaryLine(trial), 100),
  ]);
  const metric = metricOf(state);
  const [head = "", ...lines] = table([
    ["", "trial", "base", "status", oneLine(metric?.name ?? "value", 24), "gain", "hypothesis or reason"],
    ...rows,
  ]);
  const marked = lines.map((line, index) => toneOf(state, trials[index], paint)(line));
  const forked = state.forkedFrom === null ? "" : `Forked ${placeOf(state.forkedFrom)}.\n\n`;
  return `${forked}${[paint.bold(head), ...marked].join("\n")}\n\n* the best. Values are confirmed estimates where there are any, gains are over the baseline.\n`;
}

function summaryLine(trial: Trial): string {
  const words = trial.hypothesis === "" ? (trial.name ?? "") : trial.hypothesis;
  return trial.failure !== null || (trial.values === null && trial.reason !== "") ? `${trial.reason} | ${words}` : words;
}

function toneOf(state: RunState, trial: Trial | undefined, paint: Paint): (text: string) => string {
  if (trial === undefined || trial.retracted) return paint.dim;
  if (state.leader?.trial === trial.id) return paint.good;
  return trial.values === null && trial.phase === "ended" ? paint.bad : (text) => text;
}

function phaseOrStatus({ steers }: RunState, trial: Trial): string {
  const status = trial.phase === "ended" ? (trial.status ?? "") : trial.phase;
  const steer = steers[trial.id]?.steer;
  return `${status}${steer === undefined ? "" : `, ${steer}`}${trial.retracted ? ", retracted" : ""}`;
}

/**
 * The text of `trialist show RUN TRIAL`: all that is known of one trial. Seeds of confirmations appear once the run is
 * over: until then a researcher could be reading over the operator's shoulder.
 * @throws UnknownTrialError
 */
export function showTrial(state: RunState, id: string, evidence: Evidence = {}, paint: Paint = plainPaint): string {
  const trial = trialNamed(state, id);
  if (trial === null) {
    const ids = Object.keys(state.trials);
    throw new UnknownTrialError({
      expected: "a trial of this run",
      found: JSON.stringify(id),
      todo: ids.length === 0 ? "The run has no trial yet." : `It has ${ids[0]} to ${ids.at(-1)}: \`trialist show RUN\` lists them.`,
    });
  }
  const line = (label: string, text: string, tone: (text: string) => string = (same) => same): string[] =>
    field(label, text, tone, paint.bold);
  return `${[
    paint.bold(`${trial.id}  ${phaseOrStatus(state, trial)}${state.leader?.trial === trial.id ? "  (the best)" : ""}`),
    ...identityLines(state, trial, evidence, line),
    ...resultLines(state, trial, evidence, line),
    ...measurementLines(state, trial),
    ...fileLines(trial, evidence),
    ...outputLines(trial, evidence, paint),
  ].join("\n")}\n`;
}

type Line = (label: string, text: string) => string[];

function identityLines(state: RunState, trial: Trial, evidence: Evidence, line: Line): string[] {
  const times = evidence.timeline?.trials.get(trial.id);
  const hypothesis = times?.hypothesis || trial.hypothesis;
  const plan = trial.plan === null ? undefined : state.plans[trial.plan];
  const move = Object.entries(trial.move)
    .map(([key, value]) => `${oneLine(key, 40)} ${oneLine(String(value ?? ""), 80)}`)
    .join(", ");
  const others = trial.parents.filter((parent) => parent !== trial.base);
  const rests = retractedBelow(state, trial);
  const retraction = evidence.timeline?.retractions.get(trial.id);
  const steered = state.steers[trial.id];
  return [
    ...(hypothesis === "" ? [] : line("Hypothesis", oneLine(hypothesis))),
    ...(trial.name === null ? [] : line("Name", oneLine(trial.name))),
    ...(times?.by == null ? [] : line("By", oneLine(times.by))),
    ...(trial.base === null ? [] : line("Base", `${trial.base}${others.length === 0 ? "" : `; other parents ${others.join(", ")}`}`)),
    ...(trial.plan === null
      ? []
      : line(
          "Plan",
          `${trial.plan}${plan === undefined ? "" : `, ${plan.status}, compared with ${plan.comparator}`}${trial.expectedGain === null ? "" : `, expected a gain of ${signed(trial.expectedGain)}`}`,
        )),
    ...(move === "" ? [] : line("Move", move)),
    ...line("Candidate", trial.candidate.blob),
    ...(steered === undefined ? [] : line(steered.steer === "held" ? "Held" : "Pinned", oneLine(steered.reason))),
    ...(trial.retracted ? line("Retracted", retraction === undefined ? "its reason is in the ledger" : oneLine(retraction.reason)) : []),
    ...(rests.length === 0 ? [] : line("Caution", `built on or compared with ${rests.join(", ")}, retracted since`)),
  ];
}

function resultLines(state: RunState, trial: Trial, evidence: Evidence, line: Line): string[] {
  const verdict = leaderGain(state, trial, evidence);
  const hint = failureHint(state, trial, evidence.blob);
  const stage = trial.stage === null ? [] : line("Stage", trial.stage);
  const comparator = evidence.timeline?.trials.get(trial.id)?.comparatorVerdict ?? null;
  return [
    ...stage,
    ...(trial.reason === "" ? [] : line("Reason", oneLine(trial.reason))),
    ...(hint === null ? [] : line("Hint", hint)),
    ...(trial.values === null
      ? []
      : line("In-loop", `${valuesText(trial.values)}${trial.selfReported ? " (SELF-REPORTED by the candidate)" : ""}`)),
    ...(trial.estimate === null ? [] : line("Confirmed", `${valuesText(trial.estimate)}, mean over fresh seeds`)),
    ...(verdict === null
      ? []
      : line(
          "Verdict",
          `${verdictText({ ...verdict, gain: verdict.value })}${verdict.over === null ? ", against the leader of its time" : `, against ${verdict.over}`}`,
        )),
    ...(verdict === null ? [] : line("Errors", ruleErrorsText(state.configuration?.gate ?? null))),
    ...(comparator === null ? [] : line("Comparator", verdictText(comparator))),
    ...(trial.confirmation?.failed == null ? [] : line("", oneLine(trial.confirmation.failed.reason))),
    ...line("Took", `${duration(trial.wallMs)} of stages, ${duration(trial.cpuMs)} CPU, over all its measurements`),
  ];
}

function valuesText(values: Readonly<Record<string, number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${oneLine(name, 60)} ${significant(value, 7)}`)
    .join(", ");
}

function verdictText(verdict: {
  result: keyof typeof resultWords;
  gain: number;
  lower: number | null;
  upper: number | null;
  level: number;
  smallestGain: number | null;
  basis: string;
  seeds: number;
  records: number;
}): string {
  const bounds =
    verdict.lower === null && verdict.upper === null
      ? "no interval"
      : `${coverage(verdict.level)} interval ${range(verdict.lower, verdict.upper, signed)}`;
  const smallest = verdict.smallestGain === null ? "" : `, smallest visible gain ${significant(verdict.smallestGain, 3)}`;
  return `${resultWords[verdict.result]}: gain ${signed(verdict.gain)}, ${bounds}, ${verdict.basis.replaceAll("_", " ")} (${plural(verdict.seeds, "seed")}, ${plural(verdict.records, "record")})${smallest}`;
}

function measurementLines(state: RunState, trial: Trial): string[] {
  if (trial.results.length === 0) return [];
  const over = isOver(state.phase);
  const seedOf = (result: TrialResult): string => (over || !result.reason.startsWith("confirmation") ? String(result.seed) : "hidden");
  const rows = trial.results.map((result) => [
    result.measurement,
    result.reason.replaceAll("_", " "),
    result.reason.startsWith("confirmation") ? `${result.round}.${result.pair}` : "",
    seedOf(result),
    duration(Object.values(result.wallMs).reduce((total, ms) => total + ms, 0)),
    valuesText(result.values),
  ]);
  const note = rows.some((row) => row[3] === "hidden") ? ["Seeds of confirmations are shown once the run is over."] : [];
  return ["", ...table([["", "for", "pair", "seed", "stages", "values"], ...rows]), ...note];
}

function fileLines(trial: Trial, evidence: Evidence): string[] {
  if (evidence.blob === undefined) return [];
  const manifest = manifestFor(evidence.blob, trial.candidate);
  if (manifest === null) return ["", "Its files are no longer kept."];
  const rows = manifest.files.map((file) => [
    bytes(file.bytes),
    file.digest.slice(0, 12),
    `${oneLine(file.path)}${file.executable ? " (executable)" : ""}`,
  ]);
  return ["", `${plural(manifest.files.length, "file")}:`, ...table(rows)];
}

function outputLines(trial: Trial, evidence: Evidence, paint: Paint): string[] {
  const { failure } = trial;
  if (failure === null || evidence.blob === undefined) return [];
  return (["stderr", "stdout"] as const).flatMap((stream) => {
    const content = evidence.blob === undefined ? null : kept(evidence.blob, failure[stream].blob);
    if (failure[stream].bytes === 0) return [];
    const lines = content === null ? ["(no longer kept)"] : tail(decode(content), shownOutput);
    return ["", paint.bold(`${failure.stage} ${stream}, its end:`), ...lines.map((line) => `  ${line}`)];
  });
}
