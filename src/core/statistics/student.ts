import jstat from "jstat";

/** Degrees of freedom from which Student's t is the normal distribution to five digits. */
const largest = 1e6;

/**
 * One-sided quantile of Student's t ("The probable error of a mean", Biometrika 6, 1908): with probability `level` a
 * draw is above it.
 * @throws RangeError for degrees of freedom below 1 or a level outside (0, 0.5)
 */
export function studentQuantile(level: number, degreesOfFreedom: number): number {
  if (!(degreesOfFreedom >= 1)) throw new RangeError(`at least 1 degree of freedom is needed, ${degreesOfFreedom} was given`);
  if (!(level > 0 && level < 0.5)) throw new RangeError(`a one-sided level lies between 0 and 0.5, ${level} was given`);
  return jstat.jStat.studentt.inv(1 - level, Math.min(degreesOfFreedom, largest));
}

/** Mean; of identical values exactly that value, so that a repetition never looks better than what it repeats. */
export function mean(values: readonly number[]): number {
  const first = values[0] ?? Number.NaN;
  let rest = 0;
  for (const value of values) rest += value - first;
  if (Number.isFinite(rest)) return first + rest / values.length;
  return values.reduce((total, value) => total + value / values.length, 0);
}

/** Sample standard deviation (n − 1), scaled so that squares of tiny or huge values stay in range; 0 for one value. */
export function standardDeviation(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const center = mean(values);
  let scale = 0;
  for (const value of values) scale = Math.max(scale, Math.abs(value - center));
  if (scale === 0) return 0;
  let squares = 0;
  for (const value of values) squares += ((value - center) / scale) ** 2;
  return scale * Math.sqrt(squares / (values.length - 1));
}

/** An independent part of an estimate's error. */
export interface ErrorTerm {
  readonly standardError: number;
  readonly degreesOfFreedom: number;
}

/** The standard error of a mean of independent values. */
export function errorOfMean(values: readonly number[]): ErrorTerm {
  return { standardError: standardDeviation(values) / Math.sqrt(values.length), degreesOfFreedom: values.length - 1 };
}

/**
 * Half width of a one-sided interval: t · √(sum of squared errors), where t is the mean of the terms' own quantiles
 * weighted by their squared errors (Cochran & Cox, "Experimental Designs", 2nd ed. 1957, section 4.14). With two or three
 * seeds an effective number of degrees of freedom is estimated too high too often and the stated level is passed; these
 * weights keep it, at the price of somewhat wider intervals.
 */
export function marginOf(terms: readonly ErrorTerm[], level: number): number {
  const total = Math.hypot(...terms.map((term) => term.standardError));
  if (total === 0) return 0;
  const weighted = terms.reduce((sum, term) => sum + (term.standardError / total) ** 2 * studentQuantile(level, term.degreesOfFreedom), 0);
  return weighted * total;
}
