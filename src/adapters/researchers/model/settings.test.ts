import { expect, it } from "vitest";
import { modelResearcher } from "./model-researcher.js";
import { listPriceOf } from "./prices.js";
import { modelSettings } from "./settings.js";

it("knows list prices by exact and by dated ids, and no others", () => {
  expect(listPriceOf("anthropic", "claude-sonnet-4-5-20250929")).toEqual({ input: 3, cachedInput: 0.3, output: 15, asOf: "2026-11-30" });
  expect(listPriceOf("openai", "gpt-4o-mini-2024-07-18")).toMatchObject({ input: 0.15 });
  expect(listPriceOf("openai", "gpt-4o-audio")).toBeNull();
  expect(listPriceOf("openai", "claude-sonnet-4-5")).toBeNull();
});

it("refuses settings that hold a secret, or name no provider", () => {
  const settings = { provider: "openai", model: "m" };
  for (const baseUrl of ["https://user:word@host/v1", "https://host/v1?key=x", "ftp://host", "host"])
    expect(modelSettings.safeParse({ ...settings, baseUrl }).success).toBe(false);
  expect(modelSettings.safeParse({ ...settings, parameters: { seed: 1 } }).success).toBe(false);
  const options = { name: "x", key: async () => null, price: null, redact: (text: string) => text };
  expect(() => modelResearcher({ ...options, settings: modelSettings.parse({ ...settings, provider: "nobody" }) })).toThrow(RangeError);
  expect(() => modelResearcher({ ...options, settings: modelSettings.parse({ ...settings, provider: "openai-compatible" }) })).toThrow(
    /baseUrl/,
  );
});
