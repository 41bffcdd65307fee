import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { readDuration } from "../adapters/environments/units.js";
import { readYaml } from "../adapters/environments/yaml-source.js";
import { providerNamed, providers } from "../adapters/researchers/model/providers.js";
import { type ModelSettings, modelSettings, reasoningEffort } from "../adapters/researchers/model/settings.js";
import { RefusedError } from "../core/protocol/errors.js";
import { type HookWishes, hookCommands, longestStalledAfterMs, noHooks } from "./hooks.js";

/** The project's file that names models; it holds no secret, so that it can be kept with the code. */
export const modelConfigurationFile = "trialist.config.yaml";

export interface ConfiguredModel {
  readonly settings: ModelSettings;
  /** Name of the model that is asked where this one cannot answer. */
  readonly fallback: string | null;
  /** Shell command that prints the key, of a keychain for example; null: the key is in the environment. */
  readonly keyCommand: string | null;
}

export interface ModelConfiguration {
  readonly models: Readonly<Record<string, ConfiguredModel>>;
  /** Role → researcher; `*` is everyone else's. */
  readonly researchers: Readonly<Record<string, string>>;
  readonly allowUnknownPrice: boolean;
  /** Shell command that gets a query on standard input and prints what it found; null: sessions have no web search. */
  readonly webSearch: string | null;
  readonly agents: Readonly<Record<string, ConfiguredAgent>>;
  /** Commands that hear of what happens in a run. */
  readonly hooks: HookWishes;
}

/** A coding agent. */
export interface ConfiguredAgent {
  readonly command: string;
  /** Name of one of the models. */
  readonly model: string;
  readonly turnMinutes: number;
  /** Host folders that it sees. */
  readonly mounts: readonly string[];
}

const dollarsPerMillion = z.number().nonnegative();
const configuredModel = z.strictObject({
  provider: z.string(),
  model: z.string().min(1),
  base_url: z.string().optional(),
  parameters: z.strictObject({ temperature: z.number().min(0).max(2).optional(), top_p: z.number().min(0).max(1).optional() }).optional(),
  reasoning_effort: reasoningEffort.optional(),
  max_output_tokens: z.number().int().positive().optional(),
  context_tokens: z.number().int().positive().optional(),
  structured_output: z.enum(["schema", "json", "none"]).optional(),
  key_variable: z.string().optional(),
  key_command: z.string().min(1).optional(),
  timeout_seconds: z.number().positive().optional(),
  retries: z.number().int().min(0).max(50).optional(),
  price: z.strictObject({ input: dollarsPerMillion, cached_input: dollarsPerMillion.optional(), output: dollarsPerMillion }).optional(),
  fallback: z.string().optional(),
});
const configuredAgent = z.strictObject({
  command: z.string().min(1).max(8000),
  model: z.string().min(1),
  turn_minutes: z
    .number()
    .positive()
    .max(24 * 60)
    .default(30),
  mounts: z.array(z.string().min(1)).default(() => []),
});
const name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$/);
const file = z.strictObject({
  models: z.record(name, configuredModel).default(() => ({})),
  agents: z.record(name, configuredAgent).default(() => ({})),
  researchers: z.record(z.string(), z.string().min(1)).default(() => ({})),
  allow_unknown_price: z.boolean().default(false),
  web_search: z.strictObject({ command: z.string().min(1) }).optional(),
  on: hookCommands.default(() => ({})),
  stalled_after: z.string().optional(),
});

/**
 * Reads the project's models; without the file there are none.
 * @throws RefusedError that names the file, the line and what was expected
 */
export async function loadModelConfiguration(folder: string): Promise<ModelConfiguration> {
  const path = join(folder, modelConfigurationFile);
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (text === null) return { models: {}, researchers: {}, allowUnknownPrice: false, webSearch: null, agents: {}, hooks: noHooks };
  const source = readYaml(path, text);
  const [problem] = source.problems;
  if (problem !== undefined)
    throw new RefusedError({ expected: problem.expected, found: problem.found, where: `${path}:${problem.line}`, todo: problem.todo });
  const parsed = file.safeParse(source.value ?? {});
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const { line } = source.placeOfValue(issue?.path ?? []);
    throw new RefusedError({
      expected: "models, agents, researchers, allow_unknown_price, web_search, on and stalled_after as the guides have them",
      found: `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "another shape"}`,
      where: `${path}:${line}`,
    });
  }
  return configurationOf(parsed.data, path);
}

function configurationOf(given: z.infer<typeof file>, path: string): ModelConfiguration {
  const models = Object.fromEntries(Object.entries(given.models).map(([name, model]) => [name, configured(name, model, path)]));
  for (const name of Object.keys(models)) refuseBadFallbacks(name, models, path);
  return {
    models,
    researchers: given.researchers,
    allowUnknownPrice: given.allow_unknown_price,
    webSearch: given.web_search?.command ?? null,
    hooks: { commands: given.on, stalledAfterMs: given.stalled_after === undefined ? null : stalledAfter(given.stalled_after, path) },
    agents: Object.fromEntries(
      Object.entries(given.agents).map(([agent, { turn_minutes, ...rest }]) => [agent, { ...rest, turnMinutes: turn_minutes }]),
    ),
  };
}

function stalledAfter(text: string, path: string): number {
  const reading = readDuration(text);
  if (reading.ok && reading.value <= longestStalledAfterMs) return reading.value;
  throw new RefusedError({
    expected: "a duration of at most 20 days with its unit, such as 1 h",
    found: JSON.stringify(text),
    where: `${path}: stalled_after`,
  });
}

/** Fallbacks are models of this file, and come to an end. */
function refuseBadFallbacks(name: string, models: ModelConfiguration["models"], path: string): void {
  const where = `${path}: models.${name}`;
  const seen = new Set([name]);
  for (let next = models[name]?.fallback ?? null; next !== null; next = models[next]?.fallback ?? null) {
    if (!Object.hasOwn(models, next)) throw new RefusedError({ expected: "a fallback that is one of the models", found: next, where });
    if (seen.has(next)) throw new RefusedError({ expected: "fallbacks that come to an end", found: `${next} again`, where });
    seen.add(next);
  }
}

function configured(name: string, model: z.infer<typeof configuredModel>, path: string): ConfiguredModel {
  const where = `${path}: models.${name}`;
  const provider = providerNamed(model.provider);
  if (provider === null)
    throw new RefusedError({ expected: `a provider: ${providers.map((each) => each.name).join(", ")}`, found: model.provider, where });
  const { price } = model;
  const settings = modelSettings.safeParse({
    provider: model.provider,
    model: model.model,
    baseUrl: model.base_url,
    parameters: { temperature: model.parameters?.temperature, topP: model.parameters?.top_p },
    reasoningEffort: model.reasoning_effort,
    maxOutputTokens: model.max_output_tokens,
    contextTokens: model.context_tokens,
    structuredOutput: model.structured_output,
    keyVariable: model.key_variable,
    timeoutMs: model.timeout_seconds === undefined ? undefined : model.timeout_seconds * 1000,
    retries: model.retries,
    price:
      price === undefined
        ? undefined
        : { input: price.input, cachedInput: price.cached_input ?? price.input, output: price.output, asOf: "configured" },
  });
  if (!settings.success) throw new RefusedError({ expected: "settings of a model", found: z.prettifyError(settings.error), where });
  if (provider.needsBaseUrl && settings.data.baseUrl === null)
    throw new RefusedError({ expected: `base_url, which ${provider.name} needs`, found: "none", where });
  return { settings: settings.data, fallback: model.fallback ?? null, keyCommand: model.key_command ?? null };
}
