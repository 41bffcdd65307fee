import type { RunState, Trial } from "../../core/harness/state.js";
import { confirmedValue, countedValue, inLoopValue } from "../../core/harness/trial-values.js";
import { diffCandidates, type FileChange } from "./candidate-diff.js";
import { manifestFor, type ReadBlob } from "./evidence.js";
import { fenced, markdown, markdownCode } from "./hostile-text.js";
import { lineageOf } from "./lineage.js";
import { statusOf, verdictCell } from "./markdown-cells.js";
import { grid } from "./markdown-grid.js";
import type { Subject } from "./markdown-subject.js";
import { plural, signed, significant } from "./numbers.js";

/** Lines of the winner's diff. */
const shownDiffLines = 1500;

export function winnerSection({ state, summary, evidence }: Subject): string {
  const best = summary.best === null ? undefined : state.trials[summary.best.trial];
  if (best === undefined || best.kind !== "search") return "";
  const whole = evidence.timeline?.trials.get(best.id);
  const hypothesis = whole?.hypothesis || best.hypothesis;
  const by = whole?.by == null ? "" : ` Proposed by ${markdownCode(whole.by, 80)}.`;
  const expected = best.expectedGain === null ? "" : ` Its plan expected a gain of ${signed(best.expectedGain)}.`;
  return [
    `## The winner: ${best.id}`,
    hypothesis === ""
      ? "Its plan states no hypothesis."
      : hypothesis
          .split("\n")
          .map((line) => `> ${markdown(line)}`)
          .join("\n"),
    `Candidate ${markdownCode(best.candidate.blob)}.${by}${expected}`,
    winnerDiff(state, best, evidence.blob),
  ].join("\n\n");
}

function winnerDiff(state: RunState, best: Trial, blob: ReadBlob | undefined): string {
  const baseline = state.trials["t0"];
  if (blob === undefined || baseline === undefined) return "Its files were not read for this report.";
  const [from, to] = [manifestFor(blob, baseline.candidate), manifestFor(blob, best.candidate)];
  if (from === null || to === null) return "Its files are no longer kept.";
  const changes = diffCandidates(from, to, blob);
  if (changes.length === 0) return "It does not differ from the baseline.";
  return [`### What it changes, against the baseline`, ...diffBlocks(changes)].join("\n\n");
}

function diffBlocks(changes: readonly FileChange[]): string[] {
  let left = shownDiffLines;
  return changes.map((change) => {
    const title = `${markdownCode(change.path, 200)}: ${change.kind}`;
    if (change.patch === null) return `${title}; ${markdown(change.note)}.`;
    const lines = change.patch.replace(/\n$/, "").split("\n");
    const shown = lines.slice(0, Math.max(0, left));
    left -= shown.length;
    const omitted = lines.length - shown.length;
    const rest = omitted === 0 ? "" : `\n\n${plural(omitted, "line")} of this diff omitted; \`trialist diff\` prints all.`;
    return shown.length === 0
      ? `${title}.${rest}`
      : `${title}\n\n${fenced(shown.map((line) => line.slice(0, 2000)).join("\n"), "diff")}${rest}`;
  });
}

export function lineageSection({ state, summary, evidence }: Subject): string {
  if (summary.best === null || summary.best.trial === "t0") return "";
  const rows = lineageOf(state, summary.best.trial).map((trial) => [
    trial.id,
    statusOf(trial),
    significant(trial.kind === "baseline" ? countedValue(state, trial) : inLoopValue(state, trial)),
    significant(confirmedValue(state, trial)),
    verdictCell(state, trial, evidence),
    trial.kind === "baseline" ? "the baseline" : markdown(trial.hypothesis, 120),
  ]);
  return [
    `## How it came about`,
    "From the baseline to the winner, each step with its verdict against the leader of its time.",
    grid(["trial", "status", "in-loop", "confirmed", "verdict", "hypothesis"], rows),
  ].join("\n\n");
}
