import { jStat } from "jstat";

/** Degrees of freedom from which Student's t is the normal distribution to five digits. */
const largest = 1e6;

/**
 * One-sided quantile of Student's t: with probability `level` a draw is above it.
 * @throws RangeError for degrees of freedom below 1 or a level outside (0, 0.5)
 */
export function studentQuantile(level: number, degreesOfFreedom: number): number {
  if (!(degreesOfFreedom >= 1)) throw new RangeError(`at least 1 degree of freedom is needed, ${degreesOfFreedom} was given`);
  if (!(level > 0 && level < 0.5)) throw new RangeError(`a one-sided level lies between 0 and 0.5, ${level} was given`);
  return jStat.studentt.inv(1 - level, Math.min(degreesOfFreedom, largest));
}

export function mean(values: readonly number[]): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

/** Sample variance (n − 1); 0 when all values are identical, whatever rounding would say. */
export function sampleVariance(values: readonly number[]): number {
  const first = values[0];
  if (values.length < 2 || values.every((value) => value === first)) return 0;
  const center = mean(values);
  let squares = 0;
  for (const value of values) squares += (value - center) ** 2;
  return squares / (values.length - 1);
}
