import { providerNamed, providers } from "../adapters/researchers/model/providers.js";
import { type ModelSettings, modelSettings } from "../adapters/researchers/model/settings.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { ModelConfiguration } from "./model-configuration.js";

/** Begins the name of every researcher of a run that is a language model. */
export const modelPrefix = "model:";

/** Whom the command line or the environment named: a researcher, and for a provider the model and its address. */
export interface ResearcherWish {
  readonly name: string;
  readonly model: string | null;
  readonly baseUrl: string | null;
}

/**
 * The model that a wish means: a name in the configuration, `PROVIDER:MODEL`, or a provider with `--model`. Null when it
 * means no model.
 * @throws RefusedError for a model without a name, a provider or an address that it needs
 */
export function modelMeant(
  wish: ResearcherWish,
  { models }: ModelConfiguration,
): { readonly name: string; readonly settings: ModelSettings } | null {
  const name = wish.name.startsWith(modelPrefix) ? wish.name.slice(modelPrefix.length) : wish.name;
  const configured = Object.hasOwn(models, name) ? models[name] : undefined;
  if (configured !== undefined) return { name: `${modelPrefix}${name}`, settings: withWish(configured.settings, wish) };
  const colon = name.indexOf(":");
  const provider = providerNamed(colon < 0 ? name : name.slice(0, colon));
  if (provider === null) {
    if (wish.name.startsWith(modelPrefix)) throw unknownModel(name, models);
    return null;
  }
  const model = colon < 0 ? wish.model : name.slice(colon + 1);
  if (model === null || model === "")
    throw new RefusedError({
      expected: `a model of ${provider.name}`,
      found: "none",
      todo: `Name it: --researcher ${provider.name}:MODEL, or --model MODEL.`,
    });
  const settings = withWish(modelSettings.parse({ provider: provider.name, model }), wish);
  if (provider.needsBaseUrl && settings.baseUrl === null)
    throw new RefusedError({
      expected: `the address of the server for ${provider.name}`,
      found: "none",
      todo: "Name it: --base-url http://127.0.0.1:11434/v1, for example.",
    });
  return { name: `${modelPrefix}${provider.name}:${model}`, settings };
}

function withWish(settings: ModelSettings, wish: ResearcherWish): ModelSettings {
  if (wish.baseUrl === null) return settings;
  const parsed = modelSettings.safeParse({ ...settings, baseUrl: wish.baseUrl });
  if (parsed.success) return parsed.data;
  throw new RefusedError({
    expected: "an address such as http://127.0.0.1:11434/v1, without user, password or query",
    found: JSON.stringify(wish.baseUrl),
    where: "--base-url",
  });
}

function unknownModel(name: string, models: ModelConfiguration["models"]): RefusedError {
  const known = [...Object.keys(models), ...providers.map((provider) => `${provider.name}:MODEL`)];
  return new RefusedError({ expected: `a model: ${known.join(", ")}`, found: JSON.stringify(name) });
}
