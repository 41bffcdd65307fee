import { confirmedValue, countedValue, gainOverBaseline, inLoopValue } from "../../core/harness/trial-values.js";
import { markdown, markdownCode } from "./hostile-text.js";
import { statusOf, verdictCell } from "./markdown-cells.js";
import { grid } from "./markdown-grid.js";
import type { Subject } from "./markdown-subject.js";
import { duration, plural, signed, significant } from "./numbers.js";
import { predictionsOf, scorePredictions } from "./predictions.js";
import { trialsText } from "./status-text.js";

/** Rows of the table of trials; `results.tsv` holds all. */
const shownTrials = 200;

export function trialsSection({ state, summary, evidence }: Subject): string {
  const all = Object.values(state.trials).filter((trial) => trial.kind === "search");
  if (all.length === 0) return "";
  const shown = all.slice(0, shownTrials);
  const rows = shown.map((trial) => [
    trial.id,
    trial.base ?? "",
    statusOf(trial),
    `${significant(inLoopValue(state, trial))}${trial.selfReported ? " (self-reported)" : ""}`,
    significant(confirmedValue(state, trial)),
    signed(gainOverBaseline(state, countedValue(state, trial))),
    verdictCell(state, trial, evidence),
    duration(trial.wallMs),
    markdown(trial.hypothesis, 120),
    markdown(trial.reason, 120),
  ]);
  const omitted = all.length - shown.length;
  return [
    "## Trials",
    `${plural(summary.progress.done, "trial")} ended: ${trialsText(summary)}.`,
    grid(["trial", "base", "status", "in-loop", "confirmed", "over baseline", "verdict", "time", "hypothesis", "reason"], rows),
    omitted === 0 ? "" : `${plural(omitted, "trial")} omitted here: \`results.tsv\` holds all.`,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

export function failuresSection({ summary }: Subject): string {
  const { causes, total } = summary.failures;
  const { answered, refused, failed, lastViolations } = summary.calls;
  const rows = causes.map((each) => [
    String(each.n),
    each.status,
    markdown(each.stage ?? ""),
    markdown(each.cause, 200),
    `${each.example.trial}: ${markdown(each.example.line, 200)}`,
    markdown(each.hint),
  ]);
  const left = total - causes.reduce((sum, each) => sum + each.n, 0);
  const show =
    causes.length === 0 ? "" : `\`trialist show ${summary.run} ${causes[0]?.example.trial}\` has the whole output of an example.`;
  const last =
    refused + failed === 0
      ? []
      : lastViolations
          .slice(0, 5)
          .map(
            (each) =>
              `- ${markdownCode(each.code, 80)}${each.path === null ? "" : ` at ${markdownCode(each.path, 200)}`}: ${markdown(each.message, 300)}`,
          );
  return [
    "## What failed, and why",
    total === 0 ? "No trial failed." : grid(["n", "status", "stage", "why", "example", "what to do"], rows),
    left === 0 ? "" : `${left} more, in smaller groups.`,
    summary.hint === null ? "" : `Hint: ${markdown(summary.hint)}.`,
    show,
    `Calls: ${answered} answered, ${refused} refused, ${failed} failed.${last.length === 0 ? "" : " The last problems:"}`,
    last.join("\n"),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

export function predictionsSection({ state }: Subject): string {
  const score = scorePredictions(predictionsOf(state));
  if (score.n === 0) return "";
  const agreement = score.signAgreement === null ? "" : `${significant(score.signAgreement * 100, 3)} %`;
  return [
    "## Predictions",
    "Gains that plans expected, against the gains measured over the comparator that each plan froze.",
    grid(
      ["n", "sign foreseen", "mean absolute error", "bias (expected − measured)", "rank correlation"],
      [[String(score.n), agreement, significant(score.meanAbsoluteError, 3), signed(score.bias), significant(score.rankCorrelation, 3)]],
    ),
  ].join("\n\n");
}
