import { configurationOf, type RunState } from "../../core/harness/state.js";
import { continuationTexts } from "./continuation-text.js";
import { fenced, markdown } from "./hostile-text.js";
import type { Subject } from "./markdown-subject.js";
import { bytes, plural, significant } from "./numbers.js";
import { saturationText } from "./saturation-summary.js";
import { budgetText, guaranteeTexts } from "./status-text.js";

export function conditionsSection({ state, summary }: Subject): string {
  if (state.configuration === null) return "";
  const { host, seed, parallel, researchers, alternates } = configurationOf(state);
  const held = guaranteeTexts(summary);
  const versions = Object.entries(host.versions)
    .map(([name, version]) => `, ${name} ${version}`)
    .join("");
  const gpus = (host.gpus ?? []).map((model) => `, GPU ${model}`).join("");
  const lines = [
    `- Sandbox: ${summary.sandbox === "none" ? "**NONE**" : summary.sandbox}`,
    ...(held.length === 0 ? ["- Guarantees: not read for this report"] : held.map((text) => `- Held: ${markdown(text)}`)),
    `- Host: ${markdown(`${host.platform}, ${plural(host.cpus, "CPU")}, ${host.cpuModel}, ${bytes(host.memoryBytes)}${gpus}${versions}`)}`,
    `- Organization: ${markdown(state.configuration.organization.name)}, ${plural(parallel, "trial")} at once; researchers: ${markdown(
      Object.entries(researchers)
        .map(([role, name]) => `${role} = ${[name, ...(role === "*" ? alternates : [])].join(" and in turn ")}`)
        .join(", "),
    )}`,
    `- Run seed: ${seed}; it varies researchers and draws, nothing else`,
    `- Baseline measured again: ${plural(state.remeasurements.length, "time")}${driftNumbers(state)}`,
    ...summary.drift.map((notice) => `- **Drift:** ${markdown(notice.message)}`),
  ];
  return ["## Conditions", lines.join("\n")].join("\n\n");
}

function driftNumbers(state: RunState): string {
  const values = state.remeasurements.slice(-20).map((each) => `${significant(each.value)} after ${plural(each.afterTrials, "trial")}`);
  return values.length === 0 ? "" : ` (${values.join("; ")})`;
}

export function budgetSection({ summary }: Subject): string {
  return [
    "## Budget",
    ...continuationTexts(summary).map(([label, text]) => `${label} ${markdown(text)}.`),
    `${markdown(budgetText(summary))}. Confirmations, references and re-measurements use no trials, but their CPU time counts.`,
    ...(saturationText(summary) === "" ? [] : [`Chance: ${markdown(saturationText(summary))}.`]),
  ].join("\n\n");
}

export function retractionsSection({ summary, evidence }: Subject): string {
  const acts = (evidence.timeline?.operator ?? []).map(
    (each) => `- ${markdown(each.action)}${each.subject === null ? "" : ` ${markdown(each.subject)}`}: ${markdown(each.reason, 400)}`,
  );
  const gone = summary.retractions.map(
    (each) =>
      `- ${each.trial} retracted${each.reason === null ? "" : `: ${markdown(each.reason, 400)}`}${each.dependents === null || each.dependents.length === 0 ? "" : `; depend on it: ${each.dependents.join(", ")}`}`,
  );
  if (acts.length + gone.length === 0) return "";
  return ["## Retractions and what the operator did", [...gone, ...acts].join("\n")].join("\n\n");
}

export function verificationSection({ summary }: Subject): string {
  if (summary.run === null) return "";
  const best = summary.best?.trial ?? "t0";
  const commands = [
    `trialist verify ${summary.run}    # recomputes the ledger's chain, blobs and state`,
    `trialist show ${summary.run} ${best}    # every measurement behind the result`,
    `trialist diff ${summary.run} ${best}    # what it changes`,
  ];
  return [
    "## How to check this",
    fenced(commands.join("\n"), "sh"),
    "Nothing in this report was measured on held-out data; the run cannot read it.",
  ].join("\n\n");
}
