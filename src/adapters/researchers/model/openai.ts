import type { ModelProvider } from "./provider.js";

/** OpenAI, over /v1/responses. */
export const openai: ModelProvider = {
  name: "openai",
  keyVariable: "OPENAI_API_KEY",
  needsBaseUrl: false,
  async load(settings, key, fetch) {
    const { createOpenAI } = await import("@ai-sdk/openai");
    // Key and address are always given: left out, the library would look for them in variables that no setting names.
    return createOpenAI({ apiKey: key ?? "", baseURL: settings.baseUrl ?? "https://api.openai.com/v1", fetch }).languageModel(
      settings.model,
    );
  },
  specialOptions(_settings, { reasoningEffort }) {
    // The provider need not keep what a run asks.
    return { openai: { store: false, ...(reasoningEffort === null ? {} : { reasoningEffort }) } };
  },
};
