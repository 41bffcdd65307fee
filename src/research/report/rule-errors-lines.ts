import type { Gate } from "../../core/protocol/gate.js";
import type { RunConfiguration } from "../../core/protocol/run.js";
import { plural, significant } from "./numbers.js";
import { rateText, shareText, sourceWords } from "./rule-errors-text.js";
import { ruleText } from "./status-text.js";

/** What was measured of a rule's errors, for whoever asked for it. */
export function ruleErrorsLines({ environment, promotion, host }: RunConfiguration, { run, ...gate }: Gate): string[] {
  return [
    `${environment.name} under ${ruleText({ name: promotion.rule, ...promotion }, null)}, on ${plural(host.cpus, "CPU")} (${host.cpuModel})`,
    ...copiesLines(gate.copies, promotion.rule),
    ...resampledLines(gate, promotion.rule),
    ...gate.planted.map(
      ({ gain, from, kept }) =>
        `Planted gain of ${significant(gain, 3)}: found in ${shareText(kept)}, ${rateText(kept)}; put into ${sourceWords[from]}`,
    ),
    `The run of copies: \`trialist show ${run}\`.`,
  ];
}

function copiesLines({ kept, confirmed, keptUnderAny, identical }: Gate["copies"], rule: string): string[] {
  const lines = [
    `Copies of the baseline: ${shareText(kept)} kept, a false-keep rate of ${rateText(kept)} a trial; any would have kept ${keptUnderAny}`,
  ];
  if (rule === "confirmed" && confirmed.of > 0) lines.push(`Their confirmations: ${shareText(confirmed)} kept, ${rateText(confirmed)}`);
  if (identical)
    lines.push("Identical copies measure the same here on equal seeds: these figures say nothing of the noise between records or seeds.");
  return lines;
}

function resampledLines({ copies, resampled }: Omit<Gate, "run">, rule: string): string[] {
  if (resampled === null)
    return copies.identical
      ? ["There is nothing to draw from either: seeds change nothing here, and no reference row brings records that differ."]
      : [];
  const { from, records, kept, confirmed } = resampled;
  const per = rule === "confirmed" ? `; of those that it measured again ${shareText(confirmed)}, ${rateText(confirmed)}` : "";
  return [
    `Resampled, simulated from ${sourceWords[from]}${records === 0 ? "" : ` (${plural(records, "record")})`}, centred on no gain: ${shareText(kept)} draws kept, ${rateText(kept)}${per}`,
  ];
}
