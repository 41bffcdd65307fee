import type { RunState } from "../../core/harness/state.js";
import { attributionSection } from "./attribution-text.js";
import type { Evidence } from "./evidence.js";
import { markdown } from "./hostile-text.js";
import { budgetSection, conditionsSection, retractionsSection, verificationSection } from "./markdown-conditions.js";
import { environmentSection } from "./markdown-environment.js";
import { calibrationSection, confirmationsSection, rulesSection } from "./markdown-rules.js";
import type { Subject } from "./markdown-subject.js";
import { failuresSection, predictionsSection, trialsSection } from "./markdown-trials.js";
import { lineageSection, winnerSection } from "./markdown-winner.js";
import { openingOf } from "./opening.js";
import { summarize } from "./summary.js";

/**
 * `report.md`: the answer first, then everything that a careful reader asks next. Text of researchers and candidates is
 * escaped wherever it stands. Nothing in it was measured on held-out data: the run cannot see any.
 */
export function reportMarkdown(state: RunState, now: number, evidence: Evidence = {}): string {
  const subject: Subject = { state, summary: summarize(state, now, evidence), evidence };
  const sections = [
    opening(subject),
    attributionSection(subject.summary.attribution),
    failuresSection(subject),
    winnerSection(subject),
    lineageSection(subject),
    environmentSection(subject),
    calibrationSection(subject),
    confirmationsSection(subject),
    rulesSection(subject),
    trialsSection(subject),
    predictionsSection(subject),
    conditionsSection(subject),
    budgetSection(subject),
    retractionsSection(subject),
    verificationSection(subject),
  ];
  return `${sections.filter((section) => section !== "").join("\n\n")}\n`;
}

function opening({ summary }: Subject): string {
  const lines = openingOf(summary).map(({ label, text }) =>
    label === "WARNING"
      ? `- **Warning: ${markdown(text)}**`
      : // What is next is made of names that can hold nothing harmful, and is to be copied.
        `- **${label}:** ${label === "Next" || label === "Errors" ? text : markdown(text).replace(/^\\/, "")}`,
  );
  const reason = summary.reason === "" ? "" : `: ${markdown(summary.reason)}`;
  const todo = summary.todo === "" ? [] : [`\n**To do:** ${markdown(summary.todo)}`];
  return [`# ${markdown(summary.run ?? "A run that has not started")}`, `**${summary.state}**${reason}`, lines.join("\n"), ...todo].join(
    "\n\n",
  );
}
