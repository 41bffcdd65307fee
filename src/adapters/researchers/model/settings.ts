import { z } from "zod";
import { price } from "../../../core/protocol/model-use.js";

/** An address that carries no secret: it is frozen into the run's configuration, and every record names it. */
const baseUrl = z.url({ protocol: /^https?$/ }).refine(
  (text) => {
    if (!URL.canParse(text)) return false;
    const url = new URL(text);
    return url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  },
  { error: "a base URL holds neither a user, a password nor a query: keys come from the environment" },
);

export const reasoningEffort = z.enum(["minimal", "low", "medium", "high"]);
export type ReasoningEffort = z.infer<typeof reasoningEffort>;

/** Which model is asked, and how. No secret is in it: the key is read from the environment at each call. */
export const modelSettings = z.strictObject({
  provider: z.string().min(1).max(60),
  model: z.string().min(1).max(200),
  /** Null: the provider's own. */
  baseUrl: baseUrl.nullable().default(null),
  parameters: z
    .strictObject({ temperature: z.number().min(0).max(2).optional(), topP: z.number().min(0).max(1).optional() })
    .default(() => ({})),
  reasoningEffort: reasoningEffort.nullable().default(null),
  /** Reasoning included. */
  maxOutputTokens: z.number().int().positive().default(8192),
  /** What the model takes in, where it is known; prompts are cut to it. */
  contextTokens: z.number().int().positive().nullable().default(null),
  /** `schema`: the provider holds the answer to the role's schema; `json`: to any JSON; `none`: the prompt alone asks for it. */
  structuredOutput: z.enum(["schema", "json", "none"]).default("schema"),
  /** Name of the environment variable with the key; null: the provider's usual one. */
  keyVariable: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
    .max(100)
    .nullable()
    .default(null),
  /** Of one request, headers and body. */
  timeoutMs: z.number().int().positive().default(300_000),
  retries: z.number().int().min(0).max(50).default(5),
  /** Null: the price of the table. */
  price: price.nullable().default(null),
});
export type ModelSettings = z.infer<typeof modelSettings>;
