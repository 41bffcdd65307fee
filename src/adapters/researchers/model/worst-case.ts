import type { RolePrompt } from "../../../core/ports/researcher.js";
import type { Price } from "../../../core/protocol/model-use.js";

export interface Worst {
  readonly costUsd: number;
  readonly tokens: number;
}

/**
 * Tokens that a provider adds of its own: the marks around messages, and the schema once more, at more length, as the
 * description of a tool.
 */
const addedTokens = 3072;

/**
 * The most that one request can use: no token of a text is shorter than a byte, and the output is capped.
 * `promptBytes`: UTF-8 bytes of the prompt's texts and of its schema.
 */
export function worstCaseOfRequest(maxOutputTokens: number, price: Price | null, promptBytes: number): Worst {
  const input = promptBytes + addedTokens;
  const dearest = price === null ? null : { ...price, input: Math.max(price.input, price.cachedInput) };
  return { costUsd: dearest === null ? 0 : dollars(dearest, input, 0, maxOutputTokens), tokens: input + maxOutputTokens };
}

/** UTF-8 bytes of a prompt's texts and of its schema. */
export function promptBytesOf({ system, user, repair, answer }: RolePrompt): number {
  const texts = [system, user, repair?.answer ?? "", repair?.message ?? "", JSON.stringify(answer.schema)];
  return texts.reduce((total, text) => total + Buffer.byteLength(text), 0);
}

/** `input` includes `cachedInput`. */
export function dollars(price: Price, input: number, cachedInput: number, output: number): number {
  return ((input - cachedInput) * price.input + cachedInput * price.cachedInput + output * price.output) / 1e6;
}
