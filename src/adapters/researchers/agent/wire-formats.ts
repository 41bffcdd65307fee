import type { LanguageModelV3Usage } from "@ai-sdk/provider";
import type { ModelSettings } from "../model/settings.js";

type Json = Readonly<Record<string, unknown>>;

/** One way to ask a model over HTTP. */
export interface WireFormat {
  /** Of the address, after its version. */
  readonly path: string;
  /** Fields that would make a request cost more than was reserved for it, or reach further than its words. */
  readonly withheld: readonly string[];
  /** Tools that the agent itself performs. The others are the provider's: they reach the network, and cost extra. */
  readonly isOwnTool: (type: string | undefined) => boolean;
  /** Fields that cap the output, the one that is set where none is given first. */
  readonly caps: (settings: ModelSettings) => readonly [string, ...string[]];
  /** What has to be asked for so that the reply says what it used. */
  readonly added: (body: Json) => Json;
  /** What the documents of a whole reply say that it used; null: nothing that can be booked. */
  readonly usage: (documents: readonly Json[]) => LanguageModelV3Usage | null;
}

const messages: WireFormat = {
  path: "/messages",
  withheld: ["mcp_servers", "container", "service_tier", "speed", "inference_geo"],
  isOwnTool: (type) => type === undefined || type === "custom" || /^(bash|text_editor|computer|memory)_\d/.test(type),
  caps: () => ["max_tokens"],
  added: () => ({}),
  usage(documents) {
    // A stream says at its start what came in, and at its end what went out.
    const start = documents.map((each) => objectAt(each, "message", "usage")).find((each) => each !== null) ?? {};
    const end = last(documents.map((each) => objectAt(each, "usage")));
    if (end === null) return null;
    const all: Json = { ...start, ...end };
    const [read, written] = [number(all, "cache_read_input_tokens"), number(all, "cache_creation_input_tokens")];
    const reasoning = number(objectAt(all, "output_tokens_details"), "thinking_tokens");
    return counts(number(all, "input_tokens") + read + written, read, written, number(all, "output_tokens"), reasoning);
  },
};

const chatCompletions: WireFormat = {
  path: "/chat/completions",
  withheld: ["web_search_options", "service_tier", "store", "n", "audio", "modalities"],
  isOwnTool: (type) => type === "function" || type === "custom",
  caps: ({ provider }) => (provider === "openai" ? ["max_completion_tokens", "max_tokens"] : ["max_tokens", "max_completion_tokens"]),
  added: (body) => (body["stream"] === true ? { stream_options: { ...objectAt(body, "stream_options"), include_usage: true } } : {}),
  usage(documents) {
    const used = last(documents.map((each) => objectAt(each, "usage")));
    if (used === null) return null;
    const read = number(objectAt(used, "prompt_tokens_details"), "cached_tokens");
    const reasoning = number(objectAt(used, "completion_tokens_details"), "reasoning_tokens");
    return counts(number(used, "prompt_tokens"), read, 0, number(used, "completion_tokens"), reasoning);
  },
};

const responses: WireFormat = {
  path: "/responses",
  withheld: ["background", "service_tier", "conversation", "prompt"],
  isOwnTool: (type) => ["function", "custom", "local_shell", "shell", "apply_patch"].includes(type ?? ""),
  caps: () => ["max_output_tokens"],
  // What is kept at the provider could be built upon without being in any request.
  added: () => ({ store: false }),
  usage(documents) {
    const used = last(documents.map((each) => objectAt(each, "response", "usage") ?? objectAt(each, "usage")));
    if (used === null) return null;
    const read = number(objectAt(used, "input_tokens_details"), "cached_tokens");
    const reasoning = number(objectAt(used, "output_tokens_details"), "reasoning_tokens");
    return counts(number(used, "input_tokens"), read, 0, number(used, "output_tokens"), reasoning);
  },
};

/** Every format that agents may ask their model in; a new one is a value and a word here. */
const formats: readonly WireFormat[] = [messages, chatCompletions, responses];

export function wireFormatOf(path: string): WireFormat | null {
  return formats.find((format) => format.path === path) ?? null;
}

export const wirePaths = formats.map(({ path }) => path).join(", ");

/** Follows field after field as far as objects go. */
function objectAt(value: unknown, ...fields: readonly string[]): Json | null {
  const found = fields.reduce((each: unknown, field) => (isObject(each) ? each[field] : null), value);
  return isObject(found) ? found : null;
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function last<T>(values: readonly (T | null)[]): T | null {
  return values.findLast((value) => value !== null) ?? null;
}

function number(from: Json | null, field: string): number {
  const value = from?.[field];
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function counts(input: number, cacheRead: number, cacheWrite: number, output: number, reasoning: number): LanguageModelV3Usage {
  return {
    inputTokens: { total: input, noCache: undefined, cacheRead, cacheWrite },
    outputTokens: { total: output, text: undefined, reasoning },
  };
}
