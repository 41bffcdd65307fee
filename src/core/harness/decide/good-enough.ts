import { gain, primaryMetric } from "../../protocol/measurement.js";
import { chanceOfKeep } from "../../statistics/saturation.js";
import { configurationOf, type RunState } from "../state.js";

/** Why the search may end before its budget does, by the run's own words; null: it may not. */
export function goodEnough(state: RunState): string | null {
  return targetMet(state) ?? patienceOver(state) ?? saturated(state);
}

function targetMet(state: RunState): string | null {
  const { stop, environment } = configurationOf(state);
  const metric = primaryMetric(environment);
  const best = state.leader?.values[metric.name];
  if (stop.target === null || best === undefined || gain(metric, best, stop.target) < 0) return null;
  return `target: ${metric.name} is ${best}, wanted was ${stop.target}`;
}

function patienceOver(state: RunState): string | null {
  const { patience } = configurationOf(state).stop;
  if (patience === null || state.searchTrialsEnded - Math.max(state.keptAfterTrials, state.patienceFrom) < patience) return null;
  return `patience: ${patience} trials in a row brought no keep`;
}

function saturated(state: RunState): string | null {
  const { saturation } = configurationOf(state).stop;
  if (saturation === null) return null;
  const chance = chanceOfKeep(state.keepRecord, saturation.horizon);
  if (chance === null || chance > saturation.probability) return null;
  return `saturation: the chance that the next ${saturation.horizon} trials bring a keep is ${percent(chance)}, wanted was more than ${percent(saturation.probability)}`;
}

function percent(share: number): string {
  return `${Number((share * 100).toPrecision(3))} %`;
}
