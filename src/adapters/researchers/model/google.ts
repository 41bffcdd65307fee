import type { ModelProvider } from "./provider.js";
import type { ReasoningEffort } from "./settings.js";

/** Thinking tokens of models that know budgets in place of levels. They count towards the cap on output. */
const thinkingBudgets: Readonly<Record<ReasoningEffort, number>> = { minimal: 512, low: 2048, medium: 8192, high: 24576 };

/** Gemini, over :generateContent. */
export const google: ModelProvider = {
  name: "google",
  keyVariable: "GEMINI_API_KEY",
  needsBaseUrl: false,
  async load(settings, key, fetch) {
    const { createGoogleGenerativeAI } = await import("@ai-sdk/google");
    // Key and address are always given: left out, the library would look for them in variables that no setting names.
    const baseURL = settings.baseUrl ?? "https://generativelanguage.googleapis.com/v1beta";
    return createGoogleGenerativeAI({ apiKey: key ?? "", baseURL, fetch }).languageModel(settings.model);
  },
  specialOptions(settings, { reasoningEffort }) {
    if (reasoningEffort === null) return {};
    if (!/gemini-2\.5/.test(settings.model)) return { google: { thinkingConfig: { thinkingLevel: reasoningEffort } } };
    // Half of the output is left for the answer itself.
    const thinkingBudget = Math.min(thinkingBudgets[reasoningEffort], Math.floor(settings.maxOutputTokens / 2));
    return { google: { thinkingConfig: { thinkingBudget } } };
  },
};
