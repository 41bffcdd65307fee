import type { MeasuredInit } from "../../app/init.js";
import type { Metric } from "../../core/protocol/environment.js";
import { oneLine, printable } from "../../research/report/hostile-text.js";
import { bytes, duration, plural, significant } from "../../research/report/numbers.js";

/** Lines of a failed baseline's output that are shown. */
const shownLines = 20;

/** What measuring a fresh environment's baseline showed, and what it means for a search. */
export function measuredLines(measured: MeasuredInit, metrics: readonly Metric[]): string[] {
  const { baseline, costs, limits, varies } = measured;
  if (costs === null || limits === null) return failedLines(measured);
  const values = metrics.map(({ name }) => `${name} ${significant(baseline.values?.[name], 6)}`).join(", ");
  const slots = baseline.cpuMs / Math.max(1, baseline.wallMs);
  return [
    `baseline: ${values}; it took ${duration(baseline.wallMs)} and ${bytes(baseline.peakMemoryBytes)} of memory`,
    ...(slots > 1.5
      ? [`it used ${significant(slots, 2)} CPUs at once: raise \`cpus\` under \`limits\`, or its CPU time ends it early`]
      : []),
    `limits: wall ${limits.wall} (three times that, at least 30 s), memory ${limits.memory} (twice that, at least 512 MiB), written to environment.yaml`,
    ...(varies === null
      ? []
      : [
          varies
            ? "another seed gave another number: the rule is confirmed"
            : "another seed gave the same number: the rule stays threshold",
        ]),
    `a search, one trial at a time and without the time of researchers: ${costs.repetitions} repetitions to calibrate take ${duration(costs.calibrationMs)}, a trial ${duration(costs.trialMs)}` +
      `${costs.confirmations === 0 ? "" : `, one with ${plural(costs.confirmations, "confirmation")} ${duration(costs.confirmedTrialMs)}`}` +
      `; eight hours hold ${costs.nightTrials === 0 ? "calibration at most" : `about ${plural(costs.nightTrials, "trial")}`}`,
  ];
}

function failedLines({ baseline }: MeasuredInit): string[] {
  const tail = printable(baseline.output).trimEnd().split("\n").slice(-shownLines);
  const printed = tail.join("").trim() === "" ? ["It printed nothing."] : ["The end of its output:", ...tail.map((line) => `  ${line}`)];
  if (baseline.status === "interrupted")
    return ["the baseline was stopped; environment.yaml stays, with the limits of a program that was never measured"];
  return [
    `the baseline gave no number: ${baseline.status}: ${oneLine(baseline.reason ?? "no reason was given", 500)}`,
    ...(baseline.stages === 0 ? [] : printed),
    ...baseline.hints.map((hint) => `hint: ${oneLine(hint, 500)}`),
    "environment.yaml stays, with a note; mend it or the program, then `trialist init --force` or `trialist check`",
  ];
}
