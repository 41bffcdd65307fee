import { ResearcherFailedError } from "../../../core/ports/researcher.js";
import { nothing } from "../../../core/protocol/budget.js";
import type { Price } from "../../../core/protocol/model-use.js";
import { type Asked, type Asker, Asking, type Question } from "./asking.js";
import type { Droppable } from "./dropped-parameters.js";
import type { ModelProvider } from "./provider.js";
import { keyVariableOf, providerNamed, providers } from "./providers.js";
import { type Sleep, sleepFor } from "./retry.js";
import type { ModelSettings } from "./settings.js";

export interface ModelResearcherOptions {
  readonly name: string;
  readonly settings: ModelSettings;
  /** Read at each call, so that a changed key counts at once; null: there is none. */
  readonly key: () => Promise<string | null>;
  /** Null: a model without a price, which costs 0. */
  readonly price: Price | null;
  /** Takes secrets out of what is sent, comes back and is recorded. It is given JSON, which what it puts in place may not break. */
  readonly redact: (text: string) => string;
  readonly fetch?: typeof globalThis.fetch;
  /** What the model is known to refuse; default nothing. */
  readonly dropped?: ReadonlySet<Droppable>;
  readonly sleep?: Sleep;
  /** Milliseconds; wall clock, as servers name dates. */
  readonly now?: () => number;
}

/**
 * Puts questions to one model over HTTP, with its key, its retries and what it has refused once.
 * @throws RangeError for settings that name no provider, or lack its base URL
 */
export class ModelAsker {
  private readonly provider: ModelProvider;
  /** What the model has refused once is not offered again. */
  private readonly dropped: Set<Droppable>;

  constructor(private readonly options: ModelResearcherOptions) {
    this.provider = providerOf(options.settings);
    this.dropped = new Set(options.dropped);
  }

  /** `questionOf` makes the question with secrets taken out. @throws ResearcherFailedError when no answer came */
  async ask(
    asker: Asker,
    signal: AbortSignal,
    questionOf: (provider: ModelProvider, redact: (text: string) => string) => Question,
  ): Promise<Asked> {
    const { options, provider, dropped } = this;
    const { key, redact } = await keyOf(options, provider);
    return new Asking({
      provider,
      settings: options.settings,
      key,
      price: options.price,
      redact,
      fetch: options.fetch ?? provider.transport?.(options.settings, asker) ?? globalThis.fetch,
      sleep: options.sleep ?? sleepFor,
      now: options.now ?? Date.now,
      dropped,
      asker,
      question: questionOf(provider, redact),
      signal,
    }).answer();
  }
}

export function providerOf(settings: ModelSettings): ModelProvider {
  const provider = providerNamed(settings.provider);
  const names = providers.map(({ name }) => name).join(", ");
  if (provider === null) throw new RangeError(`a model's provider is one of ${names}; ${settings.provider} was found`);
  if (provider.needsBaseUrl && settings.baseUrl === null)
    throw new RangeError(`the provider ${provider.name} needs a baseUrl in the model's settings`);
  return provider;
}

/**
 * The key for one request, and what takes it and other secrets out of a text.
 * @throws ResearcherFailedError where one is needed and there is none
 */
export async function keyOf(
  options: Pick<ModelResearcherOptions, "key" | "settings" | "redact">,
  provider: ModelProvider,
): Promise<{ readonly key: string | null; readonly redact: (text: string) => string }> {
  const { settings } = options;
  const key = (await options.key())?.trim() ?? "";
  // A key as short as a word, as local servers take it, is no secret and would be found everywhere.
  if (key !== "") return { key, redact: (text) => options.redact(key.length < 8 ? text : text.replaceAll(key, "[key]")) };
  if (provider.keyVariable === null && settings.keyVariable === null) return { key: null, redact: options.redact };
  const variable = keyVariableOf(settings);
  const todo = `Set ${variable} to a key of ${settings.provider}.`;
  throw new ResearcherFailedError("key_refused", `no key for ${settings.model} (${settings.provider}): ${variable} is not set`, nothing, {
    todo,
  });
}
