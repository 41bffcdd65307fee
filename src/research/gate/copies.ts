import { configurationOf, type RunState, type Trial } from "../../core/harness/state.js";
import { isValidSearch } from "../../core/harness/trial-values.js";
import type { Gate } from "../../core/protocol/gate.js";
import { type MetricValues, primaryMetric } from "../../core/protocol/measurement.js";
import { shareOf } from "../../core/statistics/proportion.js";

/** What a run whose every candidate is a copy of its baseline says of the rule in force: each keep is a false one. */
export function copiesOf(state: RunState): Gate["copies"] {
  const copies = validCopies(state);
  const kept = copies.filter((trial) => trial.status === "keep").length;
  return {
    kept: shareOf(kept, copies.length),
    confirmed: shareOf(configurationOf(state).promotion.rule === "confirmed" ? kept : 0, confirmedOf(copies).length),
    keptUnderAny: state.keptUnderAny,
    identical: areIdentical(state, copies),
  };
}

export function validCopies(state: RunState): Trial[] {
  return Object.values(state.trials).filter(isValidSearch);
}

function confirmedOf(copies: readonly Trial[]): Trial[] {
  return copies.filter((trial) => trial.confirmation !== null);
}

/** Whether every seed gave one value, whichever copy ran: then a comparison on equal seeds has nothing to err about. */
function areIdentical(state: RunState, copies: readonly Trial[]): boolean {
  const { environment } = configurationOf(state);
  const metric = primaryMetric(environment).name;
  const bySeed = new Map<number, number>();
  const agrees = (seed: number, values: MetricValues | null): boolean => {
    const value = values?.[metric];
    if (value === undefined) return true;
    const known = bySeed.get(seed) ?? value;
    bySeed.set(seed, known);
    return known === value;
  };
  const baseline = state.trials["t0"]?.results ?? [];
  return (
    baseline.every(({ seed, values }) => agrees(seed, values)) &&
    copies.every((trial) => agrees(environment.seed, trial.values) && trial.results.every(({ seed, values }) => agrees(seed, values)))
  );
}
