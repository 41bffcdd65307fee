import { activeTime, configurationOf, type RunState } from "../core/harness/state.js";
import type { BudgetLimits } from "../core/protocol/budget.js";
import type { StopRule } from "../core/protocol/run.js";

/** A cap as a person gives it: a total, so much on top of what is spent, or none any more. */
export type CapChange = { readonly total: number } | { readonly more: number } | "none";

/** What of a run's caps and stop rules changes; what is undefined stays as it is. */
export interface BudgetChange {
  readonly caps: { readonly [D in keyof BudgetLimits]?: CapChange | undefined };
  readonly stop: { readonly [R in keyof StopRule]?: StopRule[R] | undefined };
}

/** The totals that a change asks for, in a run that stands here. */
export function changedBudget(state: RunState, { caps, stop }: BudgetChange): { readonly budget: BudgetLimits; readonly stop: StopRule } {
  const now = configurationOf(state);
  const cap = (dimension: keyof BudgetLimits): number | null => {
    const change = caps[dimension];
    if (change === undefined) return now.budget[dimension];
    if (change === "none") return null;
    return "total" in change ? change.total : change.more + spentOf(state, dimension);
  };
  const { target = now.stop.target, patience = now.stop.patience, saturation = now.stop.saturation } = stop;
  return {
    budget: {
      trials: cap("trials"),
      costUsd: cap("costUsd"),
      tokens: cap("tokens"),
      computeMs: cap("computeMs"),
      wallMs: cap("wallMs"),
    },
    stop: { target, patience, saturation },
  };
}

/** A record that a fork begins with may end while an owner is alive: its time up to there is spent, as `run.forked` counts it. */
function spentOf(state: RunState, dimension: keyof BudgetLimits): number {
  return dimension === "wallMs" ? activeTime(state, state.lastAt) : state.budget.spent[dimension];
}
