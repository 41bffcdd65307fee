import type { Price } from "../../../core/protocol/model-use.js";

/**
 * Public list prices in US dollars per million tokens (input, cached input, output), kept by hand and dated. They go out
 * of date: the price in a model's settings goes before them. Where a provider charges more for very long prompts, the
 * price of the shorter ones stands here, as prompts of a run are far below.
 */
const asOf = "2026-11-30";
const listed: Readonly<Record<string, readonly [input: number, cachedInput: number, output: number]>> = {
  "anthropic/claude-opus-4-0": [15, 1.5, 75],
  "anthropic/claude-opus-4": [15, 1.5, 75],
  "anthropic/claude-opus-4-1": [15, 1.5, 75],
  "anthropic/claude-opus-4-5": [5, 0.5, 25],
  "anthropic/claude-opus-4-6": [5, 0.5, 25],
  "anthropic/claude-sonnet-4-0": [3, 0.3, 15],
  "anthropic/claude-sonnet-4": [3, 0.3, 15],
  "anthropic/claude-sonnet-4-5": [3, 0.3, 15],
  "anthropic/claude-sonnet-4-6": [3, 0.3, 15],
  "anthropic/claude-haiku-4-5": [1, 0.1, 5],
  "openai/gpt-5": [1.25, 0.125, 10],
  "openai/gpt-5-mini": [0.25, 0.025, 2],
  "openai/gpt-5-nano": [0.05, 0.005, 0.4],
  "openai/gpt-4.1": [2, 0.5, 8],
  "openai/gpt-4.1-mini": [0.4, 0.1, 1.6],
  "openai/gpt-4o": [2.5, 1.25, 10],
  "openai/gpt-4o-mini": [0.15, 0.075, 0.6],
  "google/gemini-2.5-pro": [1.25, 0.125, 10],
  "google/gemini-2.5-flash": [0.3, 0.03, 2.5],
  "google/gemini-2.5-flash-lite": [0.1, 0.01, 0.4],
};

/** By the exact id, or by the id without its date (`-20250929`, `-2025-08-07`); null: not in the table. */
export function listPriceOf(provider: string, model: string): Price | null {
  const undated = model.replace(/-\d{4}-?\d{2}-?\d{2}$/, "");
  const found = [model, undated].map((id) => `${provider}/${id}`).find((id) => Object.hasOwn(listed, id));
  const numbers = found === undefined ? undefined : listed[found];
  if (numbers === undefined) return null;
  const [input, cachedInput, output] = numbers;
  return { input, cachedInput, output, asOf };
}
