import { activeTime, type RunState, type Trial, trialOf } from "../../core/harness/state.js";
import { countedValue, gainOverBaseline, metricOf } from "../../core/harness/trial-values.js";
import { gain } from "../../core/protocol/measurement.js";
import { statusClasses } from "../../core/protocol/status.js";
import { oneLine, shorten } from "./hostile-text.js";
import { duration, money, percent, signed, significant } from "./numbers.js";
import { columns, type Paint, plainPaint } from "./terminal.js";
import { timeLeft } from "./time-left.js";

/** One line for a trial that has just ended or turned provisional: `t17  keep  0.5123 (+0.0049 over the baseline)  hypothesis`. */
export function trialLine(state: RunState, id: string, paint: Paint = plainPaint, width = columns): string {
  const trial = trialOf(state, id);
  const status = trial.phase === "ended" ? (trial.status ?? "") : trial.phase;
  const head = `${id.padEnd(5)} ${status.padEnd(16)} `;
  const text = shorten(`${head}${resultOf(state, trial)}`, width);
  return toneOf(trial, paint)(text);
}

function resultOf(state: RunState, trial: Trial): string {
  const words = oneLine(trial.hypothesis === "" ? (trial.name ?? "") : trial.hypothesis);
  const valid = trial.status === null || statusClasses[trial.status] === "valid";
  if (!valid) return `${oneLine(trial.reason)}${words === "" ? "" : `  | ${words}`}`;
  const metric = metricOf(state);
  const remeasured = metric === null || trial.kind === "baseline" ? undefined : trial.estimate?.[metric.name];
  const value = countedValue(state, trial);
  const over = trial.kind === "baseline" ? null : gainOverBaseline(state, value);
  const marks = `${remeasured === undefined ? "" : trial.status === "keep" ? " confirmed" : " measured again"}${trial.selfReported ? " self-reported" : ""}`;
  return `${significant(value)}${over === null ? "" : ` (${signed(over)})`}${marks}${words === "" ? "" : `  ${words}`}`;
}

function toneOf(trial: Trial, paint: Paint): (text: string) => string {
  if (trial.status === "keep") return paint.good;
  if (trial.status === null || trial.status === "cancelled") return paint.dim;
  return statusClasses[trial.status] === "valid" ? (text) => text : paint.bad;
}

/**
 * The live line: trials done and cap, best and its gain, statuses, time left, spend. Cheap at any age of the run. What
 * does not fit is left out from the end, part by part.
 */
export function liveLine(state: RunState, now: number, width = columns): string {
  const cap = state.configuration?.budget.trials ?? null;
  const parts = [
    `${state.searchTrialsEnded}${cap === null ? "" : `/${cap}`} ${state.phase}`,
    bestPart(state),
    statusPart(state),
    leftPart(state, now),
    spendPart(state, now),
  ].filter((part) => part !== "");
  let line = parts[0] ?? "";
  for (const part of parts.slice(1)) if ([...line].length + part.length + 3 <= width) line += ` | ${part}`;
  return shorten(line, width);
}

function bestPart(state: RunState): string {
  const metric = metricOf(state);
  const value = metric === null ? undefined : state.leader?.values[metric.name];
  if (metric === null || state.leader === null || value === undefined) return "";
  if (state.leader.trial === "t0") return `baseline ${significant(value)}`;
  const mean = state.noise?.mean;
  const over = mean === undefined ? null : gain(metric, value, mean);
  const relative = over === null || mean === undefined || mean === 0 ? "" : `, ${percent((over / Math.abs(mean)) * 100)}`;
  return `best ${state.leader.trial} ${significant(value)} (${signed(over)}${relative})`;
}

function statusPart(state: RunState): string {
  const open = state.openTrials.length;
  const counts = Object.entries(state.statuses).map(([status, n]) => `${n} ${status}`);
  return [...counts, ...(open === 0 ? [] : [`${open} open`])].join(" ");
}

function leftPart(state: RunState, now: number): string {
  const left = timeLeft(state, now);
  return left === null || left === 0 ? "" : `~${duration(left)} left`;
}

function spendPart(state: RunState, now: number): string {
  const { costUsd, computeMs } = state.budget.spent;
  return `${duration(activeTime(state, now))}, ${duration(computeMs)} CPU${costUsd > 0 ? `, ${money(costUsd)}` : ""}`;
}
