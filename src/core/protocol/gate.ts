import { z } from "zod";
import { runName } from "./ids.js";

/** How often something happened among tries, with the exact interval of its rate at 95 %. */
export const share = z.strictObject({
  hits: z.number().int().nonnegative(),
  of: z.number().int().nonnegative(),
  lower: z.number().min(0).max(1),
  upper: z.number().min(0).max(1),
});

/**
 * What differences are drawn from. `reference`: the records of the baseline against those of a reference row.
 * `repetitions`: records of the baseline on different seeds. `pairs`: copies of the baseline beside each other, as they were
 * measured. `seeds`: values of the baseline on different seeds.
 */
export const gateSource = z.enum(["reference", "repetitions", "pairs", "seeds"]);
export type GateSource = z.infer<typeof gateSource>;

/** How often the rule in force keeps what is no better, and finds what is, as measured with copies of the baseline. */
export const gate = z.strictObject({
  /** The run that measured them. */
  run: runName,
  /** When it ended: milliseconds since 1970. */
  measuredAt: z.number().nonnegative(),
  copies: z.strictObject({
    /** Kept, of the copies that ended valid. */
    kept: share,
    /** Kept, of those that were confirmed on fresh seeds. */
    confirmed: share,
    /** What rule `any` would have kept of them. */
    keptUnderAny: z.number().int().nonnegative(),
    /** On equal seeds all copies gave equal values: then they say nothing of the rule's errors. */
    identical: z.boolean(),
  }),
  /** Simulated from real differences that were centred on zero; null where there are none to draw from. */
  resampled: z
    .strictObject({
      from: gateSource,
      /** Records that a draw takes; 0 without records. */
      records: z.number().int().nonnegative(),
      kept: share,
      confirmed: share,
    })
    .nullable(),
  /** A gain of this size, put into measured values: how often the rule found it. */
  planted: z.array(z.strictObject({ gain: z.number().positive(), from: gateSource, kept: share })).max(20),
});
export type Gate = z.infer<typeof gate>;
