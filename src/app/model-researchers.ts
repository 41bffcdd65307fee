import { randomUUID } from "node:crypto";
import { execa } from "execa";
import { z } from "zod";
import type { Droppable } from "../adapters/researchers/model/dropped-parameters.js";
import { withFallback } from "../adapters/researchers/model/fallback.js";
import type { ModelResearcherOptions } from "../adapters/researchers/model/model-asker.js";
import { modelResearcher } from "../adapters/researchers/model/model-researcher.js";
import { listPriceOf } from "../adapters/researchers/model/prices.js";
import { keyVariableOf } from "../adapters/researchers/model/providers.js";
import { sessionModel } from "../adapters/researchers/model/session-model.js";
import { type ModelSettings, modelSettings } from "../adapters/researchers/model/settings.js";
import { worstCaseOfRequest } from "../adapters/researchers/model/worst-case.js";
import { type Researcher, ResearcherFailedError } from "../core/ports/researcher.js";
import type { SessionModel } from "../core/ports/session-model.js";
import { nothing } from "../core/protocol/budget.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import type { ModelConfiguration } from "./model-configuration.js";
import { modelPrefix } from "./model-names.js";
import type { Secrets } from "./secrets.js";

/** What of a model is frozen into a run. */
const frozenModel = modelSettings.extend({ fallback: z.string().nullable() });
export type FrozenModel = z.infer<typeof frozenModel>;

/**
 * A model's settings as a run keeps them, its price with them.
 * @throws RefusedError for a price that nobody knows, unless that is allowed
 */
export function freezeModel(settings: ModelSettings, fallback: string | null, allowUnknownPrice: boolean): FrozenModel {
  const price = settings.price ?? listPriceOf(settings.provider, settings.model);
  if (price === null && !allowUnknownPrice)
    throw new RefusedError({
      expected: `a price of ${settings.model} (${settings.provider})`,
      found: "none, neither in the configuration nor in the price table",
      todo: "Give it under `price` in trialist.config.yaml, in US dollars per million tokens (0 for a model of your own), or allow it with --allow-unknown-price; it then counts as 0.",
    });
  return { ...settings, price, fallback: fallback === null ? null : `${modelPrefix}${fallback}` };
}

/** The most that one question to a model can use, with its fallback's for when it fails after all. */
export function worstCaseOfModel(
  name: string,
  settings: RunConfiguration["researcherSettings"],
  promptBytes: number,
): { readonly costUsd: number; readonly tokens: number } {
  const { maxOutputTokens, price, fallback } = frozenOf(name, settings);
  const own = worstCaseOfRequest(maxOutputTokens, price, promptBytes);
  const other = fallback === null ? { costUsd: 0, tokens: 0 } : worstCaseOfModel(fallback, settings, promptBytes);
  return { costUsd: own.costUsd + other.costUsd, tokens: own.tokens + other.tokens };
}

/** @throws z.ZodError for settings that no model has */
export function frozenOf(name: string, settings: RunConfiguration["researcherSettings"]): FrozenModel {
  return frozenModel.parse(settings[name]);
}

/** In place of a key where there is no network: nobody writes this, so that nothing is mistaken for it. */
const noKey = randomUUID();

/** What models of a run are made of. */
export interface ModelParts {
  readonly settings: RunConfiguration["researcherSettings"];
  readonly models: ModelConfiguration["models"];
  readonly secrets: Secrets;
  /** Over this fetch alone, without a key and without waiting, with parameters that the model had refused; null: over the network. */
  readonly offline: { readonly fetch: typeof fetch; readonly dropped: ReadonlySet<Droppable> } | null;
}

/** The model of a run's configuration as a researcher that answers role calls. */
export function modelResearcherNamed(name: string, parts: ModelParts): Researcher {
  const { fallback } = frozenOf(name, parts.settings);
  const own = modelResearcher(modelOptions(name, parts));
  return fallback === null ? own : withFallback(own, modelResearcherNamed(fallback, parts));
}

/** Variables that hold keys which models of a run need and which nobody set. */
export function missingKeys(
  settings: RunConfiguration["researcherSettings"],
  models: ModelConfiguration["models"],
  secrets: Secrets,
): string[] {
  const missing = Object.keys(settings)
    .filter((name) => name.startsWith(modelPrefix))
    .flatMap((name) => {
      const variable = keyVariableOf(frozenOf(name, settings));
      const isFound = variable === null || (secrets.variable(variable) ?? "").trim() !== "";
      return isFound || models[name.slice(modelPrefix.length)]?.keyCommand != null ? [] : [variable];
    });
  return [...new Set(missing)].filter((variable) => variable !== null);
}

/** The model of a run's configuration as one that works in long sessions. */
export function sessionModelNamed(name: string, parts: ModelParts): SessionModel {
  return sessionModel(modelOptions(name, parts));
}

/** What asks the model of a run's configuration. */
export function modelOptions(name: string, { settings, models, secrets, offline }: ModelParts): ModelResearcherOptions {
  const configured = models[name.slice(modelPrefix.length)];
  const { fallback: _fallback, ...kept } = frozenOf(name, settings);
  const frozen = { ...kept, ...connectionOf(kept, configured?.settings) };
  const command = configured?.keyCommand ?? null;
  return {
    name,
    settings: frozen,
    price: frozen.price,
    redact: secrets.redact,
    key: () => (offline === null ? keyOf(frozen, command, secrets) : Promise.resolve(noKey)),
    ...(offline === null ? {} : { ...offline, sleep: () => Promise.resolve() }),
  };
}

/** How a model is reached changes nothing of what it is asked: a mended address or limit counts for a run that was started before. */
function connectionOf(frozen: ModelSettings, now: ModelSettings | undefined): Partial<ModelSettings> {
  if (now === undefined || now.provider !== frozen.provider || now.model !== frozen.model) return {};
  const { baseUrl, timeoutMs, retries, keyVariable } = now;
  return { baseUrl, timeoutMs, retries, keyVariable };
}

async function keyOf(settings: ModelSettings, command: string | null, secrets: Secrets): Promise<string | null> {
  if (command === null) {
    const variable = keyVariableOf(settings);
    const key = variable === null ? null : (secrets.variable(variable) ?? null);
    if (key !== null) secrets.learn(key.trim());
    return key;
  }
  try {
    const { stdout } = await execa("sh", ["-c", command], { timeout: 30_000, stdin: "ignore" });
    secrets.learn(stdout.trim());
    return stdout.trim();
  } catch (error) {
    // What the command printed may be the key, or a part of it: it is not said.
    const code = typeof error === "object" && error !== null && "exitCode" in error ? String(error.exitCode) : "no exit code";
    throw new ResearcherFailedError("key_refused", `the key_command of ${settings.model} failed (${code})`, nothing, {
      todo: "Run the key_command of trialist.config.yaml by hand and mend it.",
    });
  }
}
