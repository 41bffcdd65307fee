import { modelResearcher } from "../../src/adapters/researchers/model/model-researcher.js";
import { modelSettings } from "../../src/adapters/researchers/model/settings.js";
import { promptBytesOf, worstCaseOfRequest } from "../../src/adapters/researchers/model/worst-case.js";
import type { Researcher, RolePrompt, RoleRequest } from "../../src/core/ports/researcher.js";
import type { Amount } from "../../src/core/protocol/budget.js";
import type { Price } from "../../src/core/protocol/model-use.js";

/** A key that must never be found in anything that is kept. */
export const secretKey = "sk-secret-0123456789abcdef";

/** Dollars per million tokens that make sums easy to do in one's head. */
export const price: Price = { input: 10, cachedInput: 1, output: 100, asOf: "configured" };

export const endless: Amount = { trials: Infinity, costUsd: Infinity, tokens: Infinity, computeMs: Infinity };

export const schema = {
  type: "object",
  properties: { choice: { type: "string" } },
  required: ["choice"],
  additionalProperties: false,
};

export function question(
  changes: { repair?: RolePrompt["repair"]; allowance?: Partial<Amount>; call?: string; round?: number } = {},
): RoleRequest {
  const prompt: RolePrompt = {
    system: "You propose changes.",
    user: "Which one?",
    answer: { name: "proposal", schema },
    repair: changes.repair ?? null,
  };
  return {
    call: changes.call ?? "c1",
    round: changes.round ?? 1,
    role: "proposer",
    seed: 7,
    violations: [],
    view: {},
    prompt: () => prompt,
    allowance: { ...endless, ...changes.allowance },
  };
}

/** Base URLs under a test server, as each provider's library completes them. */
const bases: Readonly<Record<string, string>> = { google: "/v1beta" };
const models: Readonly<Record<string, string>> = {
  anthropic: "claude-sonnet-4-5",
  openai: "gpt-4.1",
  google: "gemini-2.5-flash",
  "openai-compatible": "local-model",
};

export interface Asked {
  readonly researcher: Researcher;
  /** How long it wanted to wait, in ms; nobody waited. */
  readonly waits: number[];
}

/** A researcher on a test server, which waits for nothing and writes down how long it would have. */
export function researcherAt(
  url: string,
  provider: string,
  changes: Record<string, unknown> = {},
  options: Partial<Parameters<typeof modelResearcher>[0]> = {},
): Asked {
  const waits: number[] = [];
  const settings = modelSettings.parse({
    provider,
    model: models[provider],
    baseUrl: `${url}${bases[provider] ?? "/v1"}`,
    timeoutMs: 5000,
    retries: 2,
    ...changes,
  });
  const researcher = modelResearcher({
    name: "test",
    settings,
    key: async () => secretKey,
    price,
    redact: (text) => text,
    sleep: async (ms) => void waits.push(ms),
    ...options,
  });
  return { researcher, waits };
}

export function never(): AbortSignal {
  return new AbortController().signal;
}

/** Most input tokens of that question: a token a byte, and what providers add. */
export const worstInput = worstCaseOfRequest(0, null, promptBytesOf(question().prompt())).tokens;
