import type { BudgetLimits } from "../../protocol/budget.js";
import type { RunConfiguration, StopRule } from "../../protocol/run.js";
import { hasRoomForOneMore } from "../one-more-trial.js";
import { configurationOf, type RunState } from "../state.js";
import { refuse } from "./decision.js";
import { goodEnough } from "./good-enough.js";

const options = {
  trials: "--max-trials",
  costUsd: "--max-cost",
  tokens: "--max-tokens",
  computeMs: "--max-compute",
  wallMs: "--max-time",
} as const satisfies Record<keyof BudgetLimits, string>;

/**
 * Refuses caps under which a search that goes on would end at once: what is spent counts.
 * @throws RefusedError that names the cap
 */
export function refuseWithoutRoom(
  state: RunState,
  changes: { readonly budget: BudgetLimits; readonly stop: StopRule } & Partial<RunConfiguration>,
): void {
  const { budget } = changes;
  const configuration = { ...configurationOf(state), ...changes };
  for (const dimension of ["trials", "costUsd", "tokens", "computeMs"] as const) {
    const cap = budget[dimension];
    const spent = state.budget.spent[dimension];
    if (cap !== null && (spent >= cap || !hasRoomForOneMore(state.budget.spent, configuration, dimension)))
      throw tooSmall(dimension, cap, spent);
  }
  if (budget.wallMs !== null && state.activeMs + state.pipelineWallMs > budget.wallMs)
    throw tooSmall("wallMs", budget.wallMs, state.activeMs);
  // What waits in the queue is measured whatever the search has found.
  if (state.queue.length > 0) return;
  const enough = goodEnough({ ...state, configuration, patienceFrom: state.searchTrialsEnded });
  if (enough !== null)
    throw refuse(
      "a search that has a reason to go on",
      `one that would end at once, for its ${enough}`,
      "Give another --target or --until-saturated, or `none` to go on without.",
    );
}

function tooSmall(dimension: keyof BudgetLimits, cap: number, spent: number): Error {
  const unit = dimension === "wallMs" || dimension === "computeMs" ? " ms" : "";
  return refuse(
    "caps that leave room for one more trial",
    `a cap of ${cap}${unit}, of which ${Number(spent.toPrecision(6))}${unit} is spent`,
    `Give a larger ${options[dimension]}; +N adds N to what is spent.`,
  );
}
