import type { ModelProvider } from "./provider.js";

/** Claude, over /v1/messages. */
export const anthropic: ModelProvider = {
  name: "anthropic",
  keyVariable: "ANTHROPIC_API_KEY",
  needsBaseUrl: false,
  async load(settings, key, fetch) {
    const { createAnthropic } = await import("@ai-sdk/anthropic");
    // Key and address are always given: left out, the library would look for them in variables that no setting names.
    const baseURL = settings.baseUrl ?? "https://api.anthropic.com/v1";
    return createAnthropic({ apiKey: key ?? "", baseURL, fetch: toleratingNoUsage(fetch) }).languageModel(settings.model);
  },
  specialOptions(_settings, { reasoningEffort }) {
    // Effort, not a thinking budget: a budget would come on top of the cap on output, and of the worst case.
    if (reasoningEffort === null) return {};
    return { anthropic: { effort: reasoningEffort === "minimal" ? "low" : reasoningEffort } };
  },
};

/**
 * The library refuses a message without usage, as some proxies send it, though its text was paid for. A use of no input
 * tokens cannot be; whoever bills it takes it for use that nobody told.
 */
function toleratingNoUsage(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (!response.ok) return response;
    const text = await response.text();
    const { status, headers } = response;
    const message: unknown = JSON.parse(text);
    if (typeof message !== "object" || message === null || !("content" in message) || ("usage" in message && message.usage !== null))
      return new Response(text, { status, headers });
    return new Response(JSON.stringify({ ...message, usage: { input_tokens: 0, output_tokens: 0 } }), { status, headers });
  };
}
