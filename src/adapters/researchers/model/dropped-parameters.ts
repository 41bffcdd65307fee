import type { ModelSettings } from "./settings.js";
import type { Exchange } from "./traffic.js";

/** What a model may not take, each left out once it has said so. */
export type Droppable = "temperature" | "topP" | "reasoningEffort" | "schema" | "json" | "maxTokens";

/** All of them, in the order of the rules below. */
export const droppable: readonly Droppable[] = ["maxTokens", "temperature", "topP", "reasoningEffort", "schema", "json"];

interface Rule {
  readonly what: Droppable;
  readonly says: RegExp;
  /** Whether it is part of the request at all. */
  readonly sent: (settings: ModelSettings, dropped: ReadonlySet<Droppable>) => boolean;
  readonly warning: string;
}

const refusing =
  /unsupported|not (be )?support|unknown|unrecogni[sz]ed|not (permitted|allowed|available|a valid|compatible)|invalid|does not|doesn't|deprecated|extra (inputs|fields)|unexpected|only the default|cannot|can't|must be|no such|cannot both/i;

const rules: readonly Rule[] = [
  {
    what: "maxTokens",
    says: /max_completion_tokens/i,
    sent: ({ provider }, dropped) => provider === "openai-compatible" && !dropped.has("maxTokens"),
    warning: "the model refused max_tokens: the cap on its output is sent as max_completion_tokens",
  },
  {
    what: "temperature",
    says: /temperature/i,
    sent: ({ parameters }) => parameters.temperature !== undefined,
    warning: "the model refused a temperature: it is asked without one",
  },
  {
    what: "topP",
    says: /top_?p\b/i,
    sent: ({ parameters }) => parameters.topP !== undefined,
    warning: "the model refused top_p: it is asked without it",
  },
  {
    what: "reasoningEffort",
    says: /reasoning|effort|thinking/i,
    sent: ({ reasoningEffort }) => reasoningEffort !== null,
    warning: "the model refused a reasoning effort: it is asked without one",
  },
  {
    what: "schema",
    says: /response_?format|json_?schema|response_?schema|structured.?outputs?|output_(config|format)|text\.format|tool_choice|schema/i,
    sent: ({ structuredOutput }) => structuredOutput === "schema",
    warning: "the model refused a schema for its answer: it is asked for JSON alone",
  },
  {
    what: "json",
    says: /response_?format|json_?object|response_?mime_?type|text\.format/i,
    sent: ({ structuredOutput }, dropped) => structuredOutput === "json" || (structuredOutput === "schema" && dropped.has("schema")),
    warning: "the model refused JSON as the format of its answer: the prompt alone asks for it",
  },
];

/** The parameter that a refused request was refused for, if it can do without; else null. `dropped`: what it was asked without. */
export function refusedParameter(
  exchange: Exchange,
  settings: ModelSettings,
  dropped: ReadonlySet<Droppable>,
): { readonly what: Droppable; readonly warning: string } | null {
  // A type of error that is named so whatever was wrong tells nothing.
  const said = (exchange.responseBody ?? "").replaceAll("invalid_request_error", "");
  if ((exchange.status !== 400 && exchange.status !== 422) || !refusing.test(said)) return null;
  return rules.find(({ what, says, sent }) => !dropped.has(what) && says.test(said) && sent(settings, dropped)) ?? null;
}
