import { confirmedValue, inLoopValue } from "../../core/harness/trial-values.js";
import { markdown } from "./hostile-text.js";
import { statusOf } from "./markdown-cells.js";
import { grid } from "./markdown-grid.js";
import type { Subject } from "./markdown-subject.js";
import { coverage, duration, plural, range, signed, significant } from "./numbers.js";
import { resultWords } from "./opening.js";
import { reusedText } from "./reused-calibration-text.js";
import { ruleErrorsText } from "./rule-errors-text.js";
import { noiseText, ruleText } from "./status-text.js";
import { leaderGain } from "./summary.js";

export function calibrationSection({ state, summary }: Subject): string {
  const { noise, baseline, rule } = summary;
  if (noise === null || baseline === null || rule === null) return "";
  const stages = Object.entries(state.stageMs)
    .map(([stage, ms]) => `${markdown(stage)} ${duration(ms)}`)
    .join(", ");
  const lines = [
    `- Baseline: ${significant(baseline.mean)}, mean of ${plural(baseline.n, "repetition")}${markdown(reusedText(summary.calibrationReused))}`,
    `- Noise: ${noiseText(noise)}`,
    `- Rule: ${ruleText(rule, noise.smallestGain)}`,
    `- One measurement: ${duration(state.pipelineWallMs)}, ${duration(state.pipelineCpuMs)} CPU (${stages})`,
  ];
  const references = summary.references.map((row) => [
    row.trial,
    markdown(row.name, 80),
    significant(row.value),
    signed(row.gainOverBaseline),
    markdown(row.value === null ? `${row.status ?? "being measured"}: ${row.reason}` : "", 120),
  ]);
  return [
    "## Calibration",
    lines.join("\n"),
    ...(references.length === 0 ? [] : [grid(["reference", "name", "value", "over the baseline", ""], references)]),
  ].join("\n\n");
}

export function confirmationsSection({ state, summary, evidence }: Subject): string {
  const rows = Object.values(state.trials)
    .filter((trial) => trial.kind === "search" && trial.confirmation !== null)
    .map((trial) => {
      const [first, estimate] = [inLoopValue(state, trial), confirmedValue(state, trial)];
      const gain = leaderGain(state, trial, evidence);
      return [
        trial.id,
        trial.confirmation?.against ?? "",
        significant(first),
        significant(estimate),
        gain === null ? markdown(trial.confirmation?.failed?.reason ?? "", 120) : `${signed(gain.value)}`,
        gain === null ? "" : range(gain.lower, gain.upper, signed),
        gain === null ? "" : resultWords[gain.result],
        statusOf(trial),
      ];
    });
  if (rows.length === 0) return "";
  const level = coverage(summary.rule?.level ?? 0.05);
  return [
    "## Confirmations",
    `The first value made it a candidate and enters no estimate; the estimate is the mean over fresh seeds. Intervals are of the gain, ${level}.`,
    `How often this rule errs: ${markdown(ruleErrorsText(summary.gate))}.`,
    grid(["trial", "against", "first", "estimate", "gain", "interval", "result", "status"], rows),
  ].join("\n\n");
}

export function rulesSection({ state, summary }: Subject): string {
  const { rule, keeps, bestUnderAny, best } = summary;
  if (rule === null || rule.name === "any" || rule.name === "compare" || best === null) return "";
  const any =
    bestUnderAny === null ? ["", "", ""] : [bestUnderAny.trial, significant(bestUnderAny.value), signed(bestUnderAny.gainOverBaseline)];
  const inForce = [best.trial, significant(best.value), best.trial === "t0" ? "" : signed(best.overBaseline?.absolute)];
  const lost = Object.values(state.trials)
    .filter((trial) => trial.keptUnderAny && trial.status !== "keep")
    .map((trial) => trial.id);
  const only =
    lost.length === 0
      ? ""
      : `Kept under \`any\` alone: ${lost.slice(0, 40).join(", ")}${lost.length > 40 ? `, and ${lost.length - 40} more` : ""}.`;
  return [
    "## What another rule would have kept",
    grid(
      ["rule", "keeps", "best", "value", "over the baseline"],
      [
        [`${rule.name} (in force)`, String(keeps.underRule), ...inForce],
        ["any", String(keeps.underAny), ...any],
      ],
    ),
    "The value under `any` is a best raw measurement: optimistic, because it was selected for being high or low.",
    only,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}
