import type { ModelProvider } from "./provider.js";

/** Any server that speaks /chat/completions: vLLM, llama.cpp, Ollama, OpenRouter and many more. */
export const openaiCompatible: ModelProvider = {
  name: "openai-compatible",
  keyVariable: null,
  needsBaseUrl: true,
  async load(settings, key, fetch) {
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const provider = createOpenAICompatible({
      name: "compatible",
      baseURL: settings.baseUrl ?? "",
      ...(key === null ? {} : { apiKey: key }),
      fetch,
      // Without it the schema is never sent.
      supportsStructuredOutputs: true,
    });
    return provider.languageModel(settings.model);
  },
  specialOptions(_settings, { reasoningEffort, maxCompletionTokens }) {
    return {
      compatible: {
        ...(reasoningEffort === null ? {} : { reasoningEffort }),
        ...(maxCompletionTokens === null ? {} : { max_completion_tokens: maxCompletionTokens }),
      },
    };
  },
};
