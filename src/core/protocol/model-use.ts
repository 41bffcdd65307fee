import { z } from "zod";

/** US dollars per million tokens, as they stood on a day. */
export const price = z.strictObject({
  input: z.number().nonnegative(),
  cachedInput: z.number().nonnegative(),
  output: z.number().nonnegative(),
  /** `2026-11-30`; for a price of the user's own, the word `configured`. */
  asOf: z.string().max(40),
});
export type Price = z.infer<typeof price>;

const count = z.number().int().nonnegative();

/** What one answer of a language model took: whom we asked, how, and what it cost. */
export const modelUse = z.strictObject({
  provider: z.string().max(60),
  model: z.string().max(200),
  /** What was asked for beside the prompt: temperature, reasoning effort, most tokens of output. */
  parameters: z.record(z.string().max(60), z.union([z.string().max(200), z.number(), z.boolean()])),
  /** `input` includes `cachedInput`, `output` includes `reasoning`. */
  tokens: z.strictObject({ input: count, cachedInput: count, output: count, reasoning: count }),
  /** Null: a model without a price, which the user allowed; it costs 0 then. */
  price: price.nullable(),
  costUsd: z.number().nonnegative(),
  latencyMs: z.number().nonnegative(),
  /** HTTP requests that were made, retries included. */
  requests: count,
  /** Requests whose use nobody told, billed at the most that they can have used. */
  billedAtWorst: count,
  warnings: z.array(z.string().max(500)).max(20),
});
export type ModelUse = z.infer<typeof modelUse>;
