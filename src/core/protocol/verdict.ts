import { z } from "zod";

/** A comparison of two candidates, with what it could have seen. Gains are in the metric's unit, positive is better. */
export const verdict = z.strictObject({
  result: z.enum(["improved", "not_improved", "undecided"]),
  /** Estimated gain. */
  gain: z.number(),
  /** One-sided bounds at `level` each, so the pair is an interval at 1 − 2·level; null where it cannot be known. */
  lower: z.number().nullable(),
  upper: z.number().nullable(),
  level: z.number(),
  /** The smallest true gain that this comparison would see half of the time; null where it cannot be known. */
  smallestGain: z.number().nullable(),
  /** What the interval stands on. */
  basis: z.enum(["order", "noise_floor", "minimum_gain", "paired_records", "paired_seeds", "paired_seeds_and_records"]),
  /** Seed pairs and records used. */
  seeds: z.number().int().nonnegative(),
  records: z.number().int().nonnegative(),
});
export type Verdict = z.infer<typeof verdict>;

/** Noise of the baseline, as calibrated. */
export const noise = z.strictObject({
  n: z.number().int().positive(),
  mean: z.number(),
  /** Sample standard deviation over fresh seeds; 0 when deterministic, null with one repetition. */
  sd: z.number().nonnegative().nullable(),
  /** Repetitions on different seeds gave identical values. */
  deterministic: z.boolean(),
  /** Whether measurements carry per-record results. */
  records: z.boolean(),
  /** The smallest gain that the chosen rule can see, null when only a first trial will tell. */
  smallestGain: z.number().nonnegative().nullable(),
});
export type Noise = z.infer<typeof noise>;
