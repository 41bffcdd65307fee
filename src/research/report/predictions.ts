import type { RunState } from "../../core/harness/state.js";
import { inLoopValue, isValidSearch, metricOf } from "../../core/harness/trial-values.js";
import { gain } from "../../core/protocol/measurement.js";

/** How well plans foresaw their change: a statistic of the researchers, not of the candidates. */
export interface PredictionScore {
  /** Valid trials with an expected gain and a measured one over the comparator that their plan froze. */
  readonly n: number;
  /** Share whose sign was foreseen; trials that measured no change at all count as not foreseen, unless none was expected. */
  readonly signAgreement: number | null;
  /** Mean of |measured − expected|, in the metric's unit. */
  readonly meanAbsoluteError: number | null;
  /** Mean of expected − measured: positive when the researchers promise too much. */
  readonly bias: number | null;
  /** Spearman's, ties at their mean rank; null below three trials or when all are equal. */
  readonly rankCorrelation: number | null;
}

export interface Prediction {
  readonly trial: string;
  readonly expected: number;
  readonly measured: number;
}

/** Expected and measured gains, in order. Measured in-loop, on the seed that both share; retracted trials are left out. */
export function predictionsOf(state: RunState): Prediction[] {
  const metric = metricOf(state);
  if (metric === null) return [];
  return Object.values(state.trials).flatMap((trial) => {
    const plan = trial.plan === null ? undefined : state.plans[trial.plan];
    const comparator = plan === undefined ? undefined : state.trials[plan.comparator];
    const value = inLoopValue(state, trial);
    const other = comparator === undefined ? null : inLoopValue(state, comparator);
    if (!isValidSearch(trial) || trial.expectedGain === null || value === null || other === null) return [];
    return [{ trial: trial.id, expected: trial.expectedGain, measured: gain(metric, value, other) }];
  });
}

export function scorePredictions(predictions: readonly Prediction[]): PredictionScore {
  const n = predictions.length;
  if (n === 0) return { n, signAgreement: null, meanAbsoluteError: null, bias: null, rankCorrelation: null };
  const mean = (of: (each: Prediction) => number): number => predictions.reduce((total, each) => total + of(each), 0) / n;
  return {
    n,
    signAgreement: mean(({ expected, measured }) => (Math.sign(expected) === Math.sign(measured) ? 1 : 0)),
    meanAbsoluteError: mean(({ expected, measured }) => Math.abs(measured - expected)),
    bias: mean(({ expected, measured }) => expected - measured),
    rankCorrelation:
      n < 3 ? null : correlation(ranks(predictions.map((each) => each.expected)), ranks(predictions.map((each) => each.measured))),
  };
}

function ranks(values: readonly number[]): number[] {
  const order = values.map((_, index) => index).sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  const ranked = new Array<number>(values.length);
  for (let start = 0; start < order.length; ) {
    let end = start;
    while (end + 1 < order.length && values[order[end + 1] ?? 0] === values[order[start] ?? 0]) end += 1;
    for (let place = start; place <= end; place++) ranked[order[place] ?? 0] = (start + end) / 2 + 1;
    start = end + 1;
  }
  return ranked;
}

function correlation(a: readonly number[], b: readonly number[]): number | null {
  const mean = (a.length + 1) / 2;
  let [both, left, right] = [0, 0, 0];
  a.forEach((value, index) => {
    const other = (b[index] ?? mean) - mean;
    both += (value - mean) * other;
    left += (value - mean) ** 2;
    right += other ** 2;
  });
  return left === 0 || right === 0 ? null : both / Math.sqrt(left * right);
}
