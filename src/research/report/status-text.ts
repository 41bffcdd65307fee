import { isOver } from "../../core/harness/due.js";
import { continuationTexts } from "./continuation-text.js";
import { oneLine } from "./hostile-text.js";
import { count, coverage, duration, money, plural, range, signed, significant } from "./numbers.js";
import { openingOf } from "./opening.js";
import { reusedText } from "./reused-calibration-text.js";
import { saturationText } from "./saturation-summary.js";
import type { RunSummary } from "./summary-schema.js";
import { columns, field, type Paint, plainPaint } from "./terminal.js";

/** The text of `trialist status RUN`: the answer first, then where the run stands and what to know about it. At most 100 columns. */
export function statusText(summary: RunSummary, paint: Paint = plainPaint): string {
  const line = (label: string, text: string, tone: (text: string) => string = (same) => same): string[] =>
    field(label, text, tone, paint.bold);
  const opening = openingOf(summary).flatMap(({ label, text, tone }) => line(label, text, tone === "plain" ? undefined : paint[tone]));
  const rest = detailsOf(summary).flatMap(([label, text]) => line(label, text));
  return `${[...headline(summary, paint), ...opening, "", ...rest].join("\n")}\n`;
}

function headline(summary: RunSummary, paint: Paint): string[] {
  const title = `${summary.run ?? "(not started)"}  ${summary.state}`;
  const about = [summary.environment?.name ?? "", summary.organization ?? ""].filter((part) => part !== "").join(", ");
  const lines = [paint.bold(oneLine(about === "" ? title : `${title}  (${about})`, columns))];
  if (summary.reason !== "") lines.push(...field("Because", oneLine(summary.reason), (text) => text, paint.dim));
  if (summary.todo !== "") lines.push(...field("To do", oneLine(summary.todo), paint.bad, paint.bold));
  return lines;
}

type Detail = readonly [label: string, text: string];

function detailsOf(summary: RunSummary): Detail[] {
  return [
    ...continuationTexts(summary),
    ["Trials", trialsText(summary)],
    ...progressDetails(summary),
    ...evidenceDetails(summary),
    ...saturationDetails(summary),
    ...budgetDetails(summary),
    ...referenceDetails(summary),
    ...modelDetails(summary),
    ...problemDetails(summary),
  ];
}

/** `3 keep, 20 discard, 4 crashed`: the statuses that occurred. */
export function trialsText(summary: Pick<RunSummary, "trials">): string {
  const parts = Object.entries(summary.trials)
    .filter(([, n]) => n > 0)
    .map(([status, n]) => `${n} ${status}`);
  return parts.length === 0 ? "none has ended" : parts.join(", ");
}

function progressDetails(summary: RunSummary): Detail[] {
  const { progress, time } = summary;
  if (isOver(summary.state)) return [];
  const open = [
    progress.open > 0
      ? `${plural(progress.open, "trial")}${progress.provisional > 0 ? `, ${progress.provisional} of them under confirmation` : ""}`
      : "",
    progress.openCalls > 0 ? plural(progress.openCalls, "call") : "",
    progress.openSessions > 0 ? plural(progress.openSessions, "session") : "",
    progress.queued > 0 ? `${progress.queued} queued` : "",
  ].filter((part) => part !== "");
  return [
    ["Open", open.length === 0 ? "nothing" : open.join("; ")],
    ["Time left", time.leftMs === null ? "not known: no cap on trials or time, or nothing measured yet" : `about ${duration(time.leftMs)}`],
  ];
}

function saturationDetails(summary: RunSummary): Detail[] {
  const text = saturationText(summary);
  return text === "" ? [] : [["Chance", text]];
}

function evidenceDetails(summary: RunSummary): Detail[] {
  const details: Detail[] = [];
  const { best, noise, rule, bestUnderAny, keeps } = summary;
  if (best !== null && best.trial !== "t0") {
    if (best.provisionalValue !== null && best.confirmed)
      details.push([
        "First",
        `${significant(best.provisionalValue)} was its first measurement, which selected it and is not in its estimate`,
      ]);
    if (best.interval !== null)
      details.push(["Value", `${significant(best.value)}, ${coverage(rule?.level ?? 0.05)} interval ${range(...best.interval)}`]);
  }
  if (noise !== null) details.push(["Noise", `${noiseText(noise)}${reusedText(summary.calibrationReused)}`]);
  if (rule !== null) details.push(["Rule", ruleText(rule, noise?.smallestGain ?? null)]);
  if (rule !== null && rule.name !== "any" && rule.name !== "compare") {
    const claim =
      bestUnderAny === null || bestUnderAny.trial === "t0"
        ? ""
        : `, whose best is ${bestUnderAny.trial} at ${significant(bestUnderAny.value)} (${signed(bestUnderAny.gainOverBaseline)} over the baseline, unconfirmed${bestUnderAny.retracted ? ", retracted" : ""})`;
    details.push(["Keeps", `${keeps.underRule} under ${rule.name}; ${keeps.underAny} under any${claim}`]);
  }
  return details;
}

/** The calibrated noise in words. */
export function noiseText(noise: NonNullable<RunSummary["noise"]>): string {
  const records = noise.records ? "with per-record results" : "no per-record results";
  const repetitions = `${plural(noise.n, "calibration repetition")}, ${records}`;
  if (noise.deterministic) return `none over seeds (deterministic); ${repetitions}`;
  return noise.sd === null ? `not known; ${repetitions}` : `standard deviation ${significant(noise.sd, 3)} over seeds; ${repetitions}`;
}

/** The promotion rule in words, with the smallest gain that it can see. */
export function ruleText(rule: NonNullable<RunSummary["rule"]>, smallestGain: number | null): string {
  const parts: string[] = [rule.name];
  if (rule.name === "confirmed" || rule.name === "compare") parts.push(plural(rule.confirmations, "fresh pair"));
  if (rule.name === "threshold" && rule.minimumGain !== null) parts.push(`minimum gain ${significant(rule.minimumGain, 3)}`);
  if (rule.name !== "any") parts.push(`one-sided level ${significant(rule.level, 3)}`);
  if (smallestGain !== null) parts.push(`smallest visible gain ${significant(smallestGain, 3)}`);
  return parts.join(", ");
}

function budgetDetails(summary: RunSummary): Detail[] {
  const details: Detail[] = [["Budget", budgetText(summary)]];
  const { expectedCost } = summary;
  if (expectedCost === null) return details;
  const confirmation = expectedCost.passesPerConfirmation === 0 ? "" : `, ${expectedCost.passesPerConfirmation} more to confirm one`;
  const atCap =
    expectedCost.atCap === null || isOver(summary.state)
      ? ""
      : `; at the trial cap about ${duration(expectedCost.atCap.computeMs)} CPU${expectedCost.atCap.costUsd > 0 ? `, ${money(expectedCost.atCap.costUsd)}` : ""}`;
  details.push([
    "Expected",
    `${duration(expectedCost.pipelineWallMs)} (${duration(expectedCost.pipelineCpuMs)} CPU) a measurement${confirmation}${atCap}`,
  ]);
  return details;
}

/** What was used of every cap. */
export function budgetText(summary: Pick<RunSummary, "spend">): string {
  const { spend } = summary;
  const of = (used: string, cap: string | null): string => (cap === null ? `${used} (no cap)` : `${used} of ${cap}`);
  const { caps } = spend;
  const cap = (value: number | null | undefined, write: (value: number) => string): string | null =>
    value === null || value === undefined ? null : write(value);
  return [
    of(`${spend.trials} trials`, cap(caps?.trials, String)),
    of(`${duration(spend.activeMs)} active`, cap(caps?.wallMs, duration)),
    of(`${duration(spend.computeMs)} CPU`, cap(caps?.computeMs, duration)),
    of(`${count(spend.tokens)} tokens`, cap(caps?.tokens, count)),
    of(money(spend.costUsd), cap(caps?.costUsd, money)),
  ].join("; ");
}

function referenceDetails(summary: RunSummary): Detail[] {
  return summary.references.map((row, index): Detail => {
    const value =
      row.value === null
        ? `${row.status ?? "being measured"}${row.reason === "" ? "" : `: ${oneLine(row.reason, 120)}`}`
        : `${significant(row.value)} (${signed(row.gainOverBaseline)} over the baseline)`;
    return [index === 0 ? "References" : "", `${row.trial} ${oneLine(row.name, 60)}: ${value}`];
  });
}

/** Groups of failures that text shows. */
const shownFailures = 5;

/** Who answered and what it cost; a fallback that stood in and a bill that is a guess are seen here. */
function modelDetails({ models }: RunSummary): Detail[] {
  return models.map(({ model, answers, tokens, costUsd, billedAtWorst, warnings }) => {
    const worst = billedAtWorst === 0 ? "" : `; ${plural(billedAtWorst, "request")} billed at the most that it can have used`;
    const said = warnings.length === 0 ? "" : `; ${warnings.map((warning) => oneLine(warning)).join("; ")}`;
    return ["Model", `${oneLine(model)}: ${plural(answers, "answer")}, ${tokens} tokens, ${money(costUsd)}${worst}${said}`];
  });
}

function problemDetails(summary: RunSummary): Detail[] {
  const details: Detail[] = [];
  const { answered, refused, failed, lastViolations } = summary.calls;
  details.push(["Calls", `${answered} answered, ${refused} refused, ${failed} failed`]);
  if (refused + failed > 0) {
    for (const { code, message, path } of lastViolations.slice(0, 3))
      details.push(["", `last: ${oneLine(code, 80)}${path === null ? "" : ` at ${oneLine(path, 120)}`}: ${oneLine(message, 300)}`]);
  }
  for (const [index, cause] of summary.failures.causes.slice(0, shownFailures).entries()) {
    details.push([
      index === 0 ? "Failures" : "",
      `${cause.n} × ${cause.status}${cause.stage === null ? "" : ` in ${cause.stage}`}: ${oneLine(cause.cause, 200)} (${cause.trials.join(", ")}${cause.n > cause.trials.length ? ", …" : ""})${cause.hint === "" ? "" : `; ${cause.hint}`}`,
    ]);
  }
  if (summary.hint !== null) details.push(["Hint", oneLine(summary.hint)]);
  for (const [index, notice] of summary.drift.entries()) details.push([index === 0 ? "Drift" : "", oneLine(notice.message)]);
  for (const { trial, steer, reason } of summary.steered)
    details.push([steer === "held" ? "Held back" : "Pinned", `${trial}: ${oneLine(reason, 300)}`]);
  for (const { trial, reason, dependents } of summary.retractions) {
    details.push([
      "Retracted",
      `${trial}${reason === null ? "" : `: ${oneLine(reason, 300)}`}${dependents === null || dependents.length === 0 ? "" : `; depend on it: ${dependents.slice(0, 20).join(", ")}${dependents.length > 20 ? ", …" : ""}`}`,
    ]);
  }
  details.push(["Sandbox", summary.sandbox ?? "not known yet"]);
  for (const text of guaranteeTexts(summary)) details.push(["Held", text]);
  return details;
}

/** Each distinct set of guarantees that held, in words; empty where they were not read. */
export function guaranteeTexts(summary: Pick<RunSummary, "guarantees">): string[] {
  return (summary.guarantees ?? []).map(({ held, measurements }) => {
    const yes = (is: boolean, what: string, not: string): string => (is ? what : not.toUpperCase());
    return [
      `${plural(measurements, "measurement")} under sandbox ${held.sandbox === "none" ? "NONE" : held.sandbox}`,
      yes(held.networkOff, "network off", "network not off"),
      yes(held.filesystemIsolated, "files isolated", "files not isolated"),
      yes(held.unprivileged, "unprivileged user", "privileged user"),
      `memory by ${held.memory}`,
      `processes by ${held.processes}`,
    ].join(", ");
  });
}
