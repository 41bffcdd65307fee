import type { RunState } from "../../core/harness/state.js";
import { chanceOfKeep, fewestTrials } from "../../core/statistics/saturation.js";
import { plural, significant } from "./numbers.js";
import type { RunSummary } from "./summary-schema.js";

/** Trials that the chance is about where the run does not say. */
const usualHorizon = 10;

/** What the run's keeps say of its next trials. */
export function saturationOf({ configuration, keepRecord }: RunState): RunSummary["saturation"] {
  if (configuration === null) return null;
  const { saturation } = configuration.stop;
  const horizon = saturation?.horizon ?? usualHorizon;
  const { trials, keeps } = keepRecord;
  return { chance: chanceOfKeep(keepRecord, horizon), horizon, trials, keeps, endsAt: saturation?.probability ?? null };
}

/** The same in words, with what it stands on; empty while there is nothing to say, unless the run ends by it. */
export function saturationText({ saturation }: Pick<RunSummary, "saturation">): string {
  if (saturation === null || (saturation.chance === null && saturation.endsAt === null)) return "";
  const { chance, horizon, trials, keeps, endsAt } = saturation;
  const what = `that ${plural(horizon, "more trial")} bring a visible gain`;
  const end = endsAt === null ? "" : `; the run ends at ${inPercent(endsAt)}`;
  if (chance === null) return `${what}: not known yet, ${trials} of the ${fewestTrials} trials that it takes have ended${end}`;
  const from = `estimated from ${plural(keeps, "keep")} in ${plural(trials, "trial")}, the later ones counting more`;
  return `${inPercent(chance)} ${what} (${from}; an extrapolation: another researcher may find what these did not)${end}`;
}

function inPercent(share: number): string {
  return `${significant(share * 100, 2)} %`;
}
