import { anthropic } from "./anthropic.js";
import { google } from "./google.js";
import { openai } from "./openai.js";
import { openaiCompatible } from "./openai-compatible.js";
import type { ModelProvider } from "./provider.js";
import { scripted } from "./scripted.js";
import type { ModelSettings } from "./settings.js";

/** Every provider that a model can be asked of; a new one is a file and a line here. */
export const providers: readonly ModelProvider[] = [anthropic, openai, google, openaiCompatible, scripted];

export function providerNamed(name: string): ModelProvider | null {
  return providers.find((provider) => provider.name === name) ?? null;
}

/** Environment variable that holds the key; null: none is needed. */
export function keyVariableOf(settings: ModelSettings): string | null {
  return settings.keyVariable ?? providerNamed(settings.provider)?.keyVariable ?? null;
}
