import type { LanguageModelV3, SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { RoleRequest } from "../../../core/ports/researcher.js";
import type { ModelSettings, ReasoningEffort } from "./settings.js";

/** What a provider is told beside the common parameters of a request. */
export interface SpecialOptions {
  readonly reasoningEffort: ReasoningEffort | null;
  /** Set where the server wants the cap on output under its newer name. */
  readonly maxCompletionTokens: number | null;
}

/** A provider's wire format, and what it needs. */
export interface ModelProvider {
  readonly name: string;
  /** Environment variable of the key unless the settings name another; null: works without a key. */
  readonly keyVariable: string | null;
  readonly needsBaseUrl: boolean;
  load(settings: ModelSettings, key: string | null, fetch: typeof globalThis.fetch): Promise<LanguageModelV3>;
  specialOptions(settings: ModelSettings, options: SpecialOptions): SharedV3ProviderOptions;
  /** Serves requests in place of the network. */
  transport?(settings: ModelSettings, request: Pick<RoleRequest, "call" | "round">): typeof globalThis.fetch;
}
