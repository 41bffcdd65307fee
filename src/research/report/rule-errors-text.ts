import type { Gate, GateSource } from "../../core/protocol/gate.js";
import { significant } from "./numbers.js";

/** One line that stands beside verdicts: how often this rule errs here. */
export function ruleErrorsText(gate: Gate | null): string {
  if (gate === null) return "never measured here: `trialist calibrate ENVIRONMENT --aa 40`";
  const found = gate.planted.map(({ gain, kept }) => `${significant(gain, 3)} in ${kept.hits} of ${kept.of}`);
  const simulated = gate.planted.some(({ from }) => from !== "pairs") ? ", simulated from real measurements" : "";
  return `${falseKeeps(gate)}${found.length === 0 ? "" : `; finds a planted gain of ${found.join(", of ")}${simulated}`}`;
}

function falseKeeps({ copies, resampled }: Gate): string {
  const { kept, identical } = copies;
  if (!identical) return `false keeps of this rule here: ${shareText(kept)} copies (95 % interval ${intervalText(kept)})`;
  if (resampled === null) return `copies of the baseline measure the same here, so that no false keep can be seen (${shareText(kept)})`;
  return `false keeps of this rule here: ${shareText(resampled.kept)} draws (95 % interval ${intervalText(resampled.kept)}), simulated from ${sourceWords[resampled.from]}; copies measure the same`;
}

/** What was drawn from, in words. */
export const sourceWords: Readonly<Record<GateSource, string>> = {
  reference: "real records of the baseline and a reference row",
  repetitions: "real records of the baseline on different seeds",
  pairs: "copies measured beside each other",
  seeds: "real values of the baseline on different seeds",
};

/** `3 of 40`. */
export function shareText({ hits, of }: Gate["copies"]["kept"]): string {
  return `${hits} of ${of}`;
}

/** `0 to 8.8 %`; nothing was tried: `unknown`. */
export function intervalText({ of, lower, upper }: Gate["copies"]["kept"]): string {
  return of === 0 ? "unknown" : `${significant(100 * lower, 2)} to ${significant(100 * upper, 2)} %`;
}

/** `2.5 % (95 % interval 1.9 to 3.3 %)`. */
export function rateText(rate: Gate["copies"]["kept"]): string {
  return rate.of === 0 ? "unknown" : `${significant((100 * rate.hits) / rate.of, 3)} % (95 % interval ${intervalText(rate)})`;
}
