import type { Gate } from "../../core/protocol/gate.js";
import type { RunConfiguration } from "../../core/protocol/run.js";
import { plural } from "./numbers.js";
import { rateText, shareText } from "./rule-errors-text.js";
import { ruleText } from "./status-text.js";

/** What was measured of a rule's errors, for whoever asked for it. */
export function ruleErrorsLines({ environment, promotion, host }: RunConfiguration, { run, copies }: Gate): string[] {
  const { kept, confirmed, keptUnderAny, identical } = copies;
  const lines = [
    `${environment.name} under ${ruleText({ name: promotion.rule, ...promotion }, null)}, on ${plural(host.cpus, "CPU")} (${host.cpuModel})`,
    `Copies of the baseline: ${shareText(kept)} kept, a false-keep rate of ${rateText(kept)} a trial; any would have kept ${keptUnderAny}`,
  ];
  if (promotion.rule === "confirmed") lines.push(`Confirmations: ${shareText(confirmed)} kept, ${rateText(confirmed)}`);
  if (identical)
    lines.push(
      "Identical copies measure the same here on equal seeds: the figures above say nothing of the noise between records or seeds.",
    );
  return [...lines, `The run of copies: \`trialist show ${run}\`.`];
}
