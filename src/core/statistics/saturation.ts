/**
 * What a run's searched trials tell of its next ones, as sums that a fold can keep: a trial that said something about
 * its candidate has a place, 1, 2, 3 … in the order of the ends.
 */
export interface KeepRecord {
  /** How many have a place. */
  readonly trials: number;
  /** How many of them are keeps that stand. */
  readonly keeps: number;
  /** Sum of the keeps' places: late keeps weigh more. */
  readonly keptPlaces: number;
}

export const noKeepRecord: KeepRecord = { trials: 0, keeps: 0, keptPlaces: 0 };

/** Trials before which nothing is said: fewer would be the prior's word. */
export const fewestTrials = 20;

/**
 * The chance that at least one of the next `horizon` trials is a keep; null before `fewestTrials` have ended.
 *
 * Trial i of n weighs i: a search finds less the longer it goes on, and linear weights follow that at every age, where
 * weights that halve every so many trials would never leave enough of them to call a chance small. The weights are scaled
 * so that they sum to the effective number of trials, (Σw)² / Σw² = 3n(n + 1) / (2(2n + 1)) (Kish, "Survey Sampling", 1965,
 * section 11.7). With Jeffreys' prior Beta(½, ½) that gives Beta(a, b), and by the beta-binomial distribution
 * P = 1 − B(a, b + h) / B(a, b) = 1 − Π (b + j) / (a + b + j), j = 0 … h − 1 (Gelman et al., "Bayesian Data Analysis", 3rd ed.
 * 2013, sections 2.4 and 2.8). Where keeps get rarer it errs towards going on, by up to three times for a search that draws
 * at random. It extrapolates: another researcher or another direction may bring what the last ones did not.
 */
export function chanceOfKeep({ trials, keptPlaces }: KeepRecord, horizon: number): number | null {
  if (trials < fewestTrials) return null;
  const effective = (3 * trials * (trials + 1)) / (2 * (2 * trials + 1));
  const share = keptPlaces / ((trials * (trials + 1)) / 2);
  const [a, b] = [0.5 + effective * share, 0.5 + effective * (1 - share)];
  let none = 1;
  for (let trial = 0; trial < horizon; trial++) none *= (b + trial) / (a + b + trial);
  return 1 - none;
}
