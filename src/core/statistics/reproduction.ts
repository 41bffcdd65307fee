import type { Verdict } from "../protocol/verdict.js";

/** Whether measuring again bears out what was claimed. */
export type Reproduction = "reproduced" | "not_reproduced" | "undecided";

/**
 * Holds a verdict on fresh seeds against the recorded one. A recorded gain is borne out by one that is above zero here too
 * (and above the minimum, where the rule has one), and refuted where it is not; an interval with zero in it decides
 * nothing. That no gain was shown is borne out unless one is shown here.
 */
export function reproductionOf(
  recorded: Pick<Verdict, "result">,
  here: Pick<Verdict, "result" | "gain">,
  minimumGain: number | null,
): Reproduction {
  const isGain = here.result === "improved" && here.gain > (minimumGain ?? 0);
  if (recorded.result !== "improved") return isGain ? "not_reproduced" : "reproduced";
  if (isGain) return "reproduced";
  return here.result === "not_improved" ? "not_reproduced" : "undecided";
}

/** Values measured again on the seeds of the first time. */
export interface SameSeeds {
  readonly compared: number;
  readonly equal: number;
  /** The largest difference in any metric's own unit; null when nothing could be compared. */
  readonly largestDifference: number | null;
}

/** Compares metric by metric; clocks never show the same twice, so metrics in `ignored` are left out. */
export function sameSeedsOf(
  pairs: readonly (readonly [before: Readonly<Record<string, number>>, again: Readonly<Record<string, number>>])[],
  ignored: ReadonlySet<string>,
): SameSeeds {
  let [compared, equal] = [0, 0];
  let largest: number | null = null;
  for (const [before, again] of pairs) {
    for (const [metric, value] of Object.entries(before)) {
      const now = again[metric];
      if (now === undefined || ignored.has(metric)) continue;
      compared += 1;
      if (now === value) equal += 1;
      largest = Math.max(largest ?? 0, Math.abs(now - value));
    }
  }
  return { compared, equal, largestDifference: largest };
}
