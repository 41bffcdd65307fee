import { type ErrorTerm, marginOf } from "./student.js";

/** A probability below this is not told apart from it: quantiles that far out are not exact. */
const smallestP = 1e-9;

/**
 * One-sided p of "there is a gain": the level from which on the interval's lower bound is not above zero any more. It
 * belongs to `marginOf`, so that it is below a level exactly where a verdict at that level says improved.
 */
export function oneSidedP(gain: number, terms: readonly ErrorTerm[]): number {
  if (gain < 0) return 1 - oneSidedP(-gain, terms);
  if (terms.every((term) => term.standardError === 0)) return gain > 0 ? 0 : 1;
  if (gain === 0) return 0.5;
  if (marginOf(terms, smallestP) < gain) return smallestP;
  let [low, high] = [Math.log(smallestP), Math.log(0.5)];
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (marginOf(terms, Math.exp(middle)) < gain) high = middle;
    else low = middle;
  }
  return Math.exp(high);
}

/**
 * Holm's step-down adjustment ("A simple sequentially rejective multiple test procedure", Scandinavian Journal of
 * Statistics 6, 1979): of all claims whose adjusted p is at most α, not one is false, with probability 1 − α, however the
 * tests hang together. In the order given.
 */
export function holm(ps: readonly number[]): number[] {
  const order = ps.map((p, index) => ({ p, index })).sort((a, b) => a.p - b.p);
  const adjusted = new Array<number>(ps.length).fill(1);
  let least = 0;
  for (const [rank, { p, index }] of order.entries()) {
    least = Math.max(least, Math.min(1, p * (ps.length - rank)));
    adjusted[index] = least;
  }
  return adjusted;
}
