import { uncovered } from "../core/harness/one-more-trial.js";
import { RefusedError } from "../core/protocol/errors.js";
import { duration } from "../research/report/numbers.js";

const options = { trials: "--max-trials", costUsd: "--max-cost", tokens: "--max-tokens", computeMs: "--max-compute" } as const;

/**
 * Caps that do not cover one question and one pass of the stages would calibrate the baseline and end: they are refused before
 * anything is spent.
 * @throws RefusedError that names the cap
 */
export function refuseUnaffordable(configuration: Parameters<typeof uncovered>[0]): void {
  const short = uncovered(configuration);
  if (short === null) return;
  const { of, dimension, least } = short;
  const inWords = (amount: number): string =>
    dimension === "computeMs" ? `${duration(amount)} of CPU time` : String(Number(amount.toPrecision(4)));
  const isPass = of === "pass";
  throw new RefusedError({
    expected: `a cap that covers one ${isPass ? "trial" : "question"}: ${inWords(least)}, ${isPass ? "the limits of its stages" : "the most that it can use"}`,
    found: inWords(configuration.budget[dimension] ?? 0),
    where: options[dimension],
    todo: isPass
      ? "Give a larger cap, or lower `cpu` or `wall` in the limits of the stages in environment.yaml."
      : dimension === "computeMs"
        ? "Give a larger cap: a program that is asked may use that much."
        : "`trialist estimate` with the same options says more; a smaller max_output_tokens in trialist.config.yaml makes a question cheaper.",
  });
}
