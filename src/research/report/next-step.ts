import { isOver } from "../../core/harness/due.js";
import { isSmallerRecipeBetter } from "./attribution-text.js";
import type { RunSummary } from "./summary-schema.js";

/** What a person does next, as a command; empty where the run itself goes on, or has said what to do. */
export function nextStep(summary: RunSummary): string {
  const { run, state, best, attribution, failures } = summary;
  if (run === null || summary.rule?.name === "compare") return "";
  if (state === "paused") return `\`trialist resume ${run}\` goes on`;
  if (!isOver(state)) return "";
  if (best === null) return "";
  if (best.trial === "t0") {
    const example = failures.causes[0]?.example.trial;
    if (summary.nullRun && example !== undefined) return `\`trialist show ${run} ${example}\` has the output of what failed most`;
    return `nothing to apply: \`trialist show ${run}\` lists what was tried`;
  }
  if (best.restsOnRetracted.length > 0) return `look before you trust it: \`trialist show ${run} ${best.trial}\``;
  if (isSmallerRecipeBetter(attribution) && attribution.winner === best.trial)
    return `\`trialist apply ${attribution.smallest.run}\` puts the smallest recipe into the working tree, \`trialist apply ${run}\` the whole winner`;
  const attribute = attribution === null ? `; \`trialist attribute ${run}\` says which of its changes the gain needs` : "";
  return `\`trialist apply ${run}\` puts ${best.trial} into the working tree${attribute}`;
}
