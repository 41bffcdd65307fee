import { z } from "zod";

/**
 * The JSON of `trialist attribute RUN --json`, and of the member `attribution` of the status document. Gains are in the
 * metric's unit and positive where the change, or the recipe, is better. What is not known is null.
 */
export const attributionSchemaName = "trialist/attribution@1";

/** A gain with one-sided bounds at the attribution's level each. */
const gain = z.strictObject({ value: z.number(), lower: z.number().nullable(), upper: z.number().nullable() });
export type Gain = z.infer<typeof gain>;

export const changeClasses = ["real", "neutral", "harmful", "required", "entangled", "absent", "undecided"] as const;
export type ChangeClass = (typeof changeClasses)[number];

const attributedChange = z.strictObject({
  /** The trial that brought it, or `h1` … for a hunk of the whole difference. */
  change: z.string(),
  /** The trial that it was made on. */
  base: z.string(),
  words: z.string(),
  paths: z.array(z.string()),
  /** Null until it is measured. */
  class: z.enum(changeClasses).nullable(),
  /** Of having it: winner over the winner without it. */
  gain: gain.nullable(),
  /** One-sided p of "having it is better", adjusted by Holm for all changes that were measured. */
  adjustedP: z.number().nullable(),
  /** Where it was measured, in the list run. */
  trial: z.string().nullable(),
  /** What it is entangled with. */
  with: z.array(z.string()),
  note: z.string(),
});
export type AttributedChange = z.infer<typeof attributedChange>;

export const smallestSummary = z.strictObject({
  /** The list run that measures it; null where there is nothing to measure: every change is needed, or not decided. */
  run: z.string().nullable(),
  state: z.enum(["none", "waiting", "measuring", "done", "failed"]),
  leavesOut: z.array(z.string()),
  /** It is the baseline that the search began with. */
  isBaseline: z.boolean(),
  value: z.number().nullable(),
  overWinner: gain.nullable(),
  overBaseline: gain.nullable(),
  /** Whether it is not worse than the winner by what counts: from the interval. */
  keepsTheGain: z.enum(["yes", "no", "undecided"]).nullable(),
  beatsTheBaseline: z.enum(["yes", "no", "undecided"]).nullable(),
  note: z.string(),
});
export type SmallestSummary = z.infer<typeof smallestSummary>;

export const attribution = z.strictObject({
  schema: z.literal(attributionSchemaName),
  run: z.string(),
  winner: z.string(),
  by: z.enum(["step", "hunk"]),
  /** The list run that the answers come from. */
  list: z.string(),
  state: z.enum(["measuring", "done", "failed"]),
  metric: z.string(),
  /** Pairs of fresh measurements behind every gain. */
  pairs: z.number(),
  level: z.number(),
  /** Two recipes that differ by less count as equal; stated before anything was measured. */
  margin: z.number(),
  changes: z.array(attributedChange),
  /** Changes that were left out together, since they stand on the same lines. */
  groups: z.array(z.strictObject({ changes: z.array(z.string()), trial: z.string().nullable(), gain: gain.nullable(), note: z.string() })),
  smallest: smallestSummary,
  note: z.string(),
});
export type Attribution = z.infer<typeof attribution>;
