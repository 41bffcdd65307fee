import type { Researcher, RolePrompt, RoleRequest } from "../../../core/ports/researcher.js";
import { ResearcherFailedError } from "../../../core/ports/researcher.js";
import { nothing } from "../../../core/protocol/budget.js";
import type { Price } from "../../../core/protocol/model-use.js";
import { Asking } from "./asking.js";
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
  readonly sleep?: Sleep;
  /** Milliseconds; wall clock, as servers name dates. */
  readonly now?: () => number;
}

/**
 * A researcher that is a language model, asked over HTTP.
 * @throws RangeError for settings that name no provider, or lack its base URL
 */
export function modelResearcher(options: ModelResearcherOptions): Researcher {
  const provider = providerOf(options.settings);
  // What the model has refused once it is not offered again.
  const dropped = new Set<Droppable>();
  return {
    name: options.name,
    async answer(request, signal) {
      const key = await keyOf(options, provider);
      // A key as short as a word, as local servers take it, is no secret and would be found everywhere.
      const redact = (text: string): string => options.redact(key === null || key.length < 8 ? text : text.replaceAll(key, "[key]"));
      const asking = new Asking({
        provider,
        settings: options.settings,
        key,
        price: options.price,
        redact,
        fetch: options.fetch ?? provider.transport?.(options.settings, request) ?? globalThis.fetch,
        sleep: options.sleep ?? sleepFor,
        now: options.now ?? Date.now,
        dropped,
        request,
        prompt: redacted(request, options.settings, redact),
        signal,
      });
      return asking.answer();
    },
  };
}

function providerOf(settings: ModelSettings): ModelProvider {
  const provider = providerNamed(settings.provider);
  const names = providers.map(({ name }) => name).join(", ");
  if (provider === null) throw new RangeError(`a model's provider is one of ${names}; ${settings.provider} was found`);
  if (provider.needsBaseUrl && settings.baseUrl === null)
    throw new RangeError(`the provider ${provider.name} needs a baseUrl in the model's settings`);
  return provider;
}

async function keyOf({ key, settings }: ModelResearcherOptions, provider: ModelProvider): Promise<string | null> {
  const found = (await key())?.trim() ?? "";
  if (found !== "") return found;
  if (provider.keyVariable === null && settings.keyVariable === null) return null;
  const variable = keyVariableOf(settings);
  const todo = `set ${variable} to a key of ${settings.provider}`;
  throw new ResearcherFailedError("key_refused", `no key for ${settings.model} (${settings.provider}): ${variable} is not set`, nothing, {
    todo,
  });
}

/** Bytes of code and prose that a token holds at least, on the whole; what is longer is refused by the server, and said. */
const bytesPerToken = 2.5;
/** Tokens that are left for the schema, a repair and the marks around messages. */
const spareTokens = 512;

/** What the model takes in, in bytes; undefined where nobody said. */
function roomOf({ contextTokens, maxOutputTokens }: ModelSettings): number | undefined {
  if (contextTokens === null) return undefined;
  return Math.max(0, Math.floor((contextTokens - maxOutputTokens - spareTokens) * bytesPerToken));
}

/** A secret that got into a view or an answer goes to no provider. */
function redacted(request: RoleRequest, settings: ModelSettings, redact: (text: string) => string): RolePrompt {
  const { system, user, answer, repair } = request.prompt(roomOf(settings));
  return {
    system: redact(system),
    user: redact(user),
    answer,
    repair: repair === null ? null : { answer: redact(repair.answer), message: redact(repair.message) },
  };
}
