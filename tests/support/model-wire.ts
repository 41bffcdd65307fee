import type { ModelRequest } from "./model-server.js";

/** What an answer used; `input` includes `cachedInput`, `output` includes `reasoning`. */
export interface Told {
  readonly input: number;
  readonly cachedInput: number;
  readonly output: number;
  readonly reasoning: number;
}

/** What a model says: words, and tools that it calls. */
export interface Said {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly input: unknown }[];
}

/** The body of a whole answer in one provider's format. */
export type WireFormat = (request: ModelRequest, said: Said, told: Told | null) => Record<string, unknown>;

const formats: readonly (readonly [RegExp, WireFormat])[] = [
  [/\/chat\/completions$/, chatCompletion],
  [/\/responses$/, response],
  [/\/messages$/, message],
  [/:generateContent$/, generatedContent],
];

export function wireFormatOf(path: string): WireFormat | null {
  return formats.find(([pattern]) => pattern.test(path))?.[1] ?? null;
}

function chatCompletion(request: ModelRequest, { text, calls }: Said, told: Told | null): Record<string, unknown> {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1764500000,
    model: request.body?.["model"],
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: text, refusal: null, ...toolCalls(calls) },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    ...(told && {
      usage: {
        prompt_tokens: told.input,
        completion_tokens: told.output,
        total_tokens: told.input + told.output,
        prompt_tokens_details: { cached_tokens: told.cachedInput },
        completion_tokens_details: { reasoning_tokens: told.reasoning },
      },
    }),
  };
}

function toolCalls(calls: Said["calls"]): Record<string, unknown> {
  if (calls.length === 0) return {};
  const called = calls.map(({ name, input }, index) => ({
    id: `call-${index}`,
    type: "function",
    function: { name, arguments: textOf(input) },
  }));
  return { tool_calls: called };
}

/** A text stands for input that is no JSON. */
function textOf(input: unknown): string {
  return typeof input === "string" ? input : JSON.stringify(input);
}

function response(request: ModelRequest, { text, calls }: Said, told: Told | null): Record<string, unknown> {
  const content = [{ type: "output_text", text, annotations: [] }];
  return {
    id: "resp-1",
    object: "response",
    created_at: 1764500000,
    status: "completed",
    error: null,
    incomplete_details: null,
    model: request.body?.["model"],
    output: [
      ...(text === "" && calls.length > 0 ? [] : [{ type: "message", id: "msg-1", status: "completed", role: "assistant", content }]),
      ...calls.map(({ name, input }, index) => ({
        type: "function_call",
        id: `fc-${index}`,
        call_id: `call-${index}`,
        name,
        arguments: textOf(input),
      })),
    ],
    ...(told && {
      usage: {
        input_tokens: told.input,
        input_tokens_details: { cached_tokens: told.cachedInput },
        output_tokens: told.output,
        output_tokens_details: { reasoning_tokens: told.reasoning },
        total_tokens: told.input + told.output,
      },
    }),
  };
}

function message(request: ModelRequest, { text, calls }: Said, told: Told | null): Record<string, unknown> {
  return {
    id: "msg-1",
    type: "message",
    role: "assistant",
    model: request.body?.["model"],
    ...messageContent(request, { text, calls }),
    stop_sequence: null,
    ...(told && {
      usage: {
        input_tokens: told.input - told.cachedInput,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: told.cachedInput,
        output_tokens: told.output,
        output_tokens_details: { thinking_tokens: told.reasoning },
      },
    }),
  };
}

/** Models without structured output are made to call a tool whose input is the answer. */
function messageContent(request: ModelRequest, { text, calls }: Said): Record<string, unknown> {
  if (calls.length > 0) {
    const used = calls.map(({ name, input }, index) => ({ type: "tool_use", id: `toolu-${index}`, name, input }));
    return { content: [...(text === "" ? [] : [{ type: "text", text }]), ...used], stop_reason: "tool_use" };
  }
  const tools = request.body?.["tools"] as readonly { name: string }[] | undefined;
  const isForced = (request.body?.["tool_choice"] as { type?: string } | undefined)?.type !== "auto";
  if (tools?.[0] === undefined || !isForced) return { content: [{ type: "text", text }], stop_reason: "end_turn" };
  return { content: [{ type: "tool_use", id: "toolu-1", name: tools[0].name, input: JSON.parse(text) }], stop_reason: "tool_use" };
}

function generatedContent(_request: ModelRequest, { text, calls }: Said, told: Told | null): Record<string, unknown> {
  return {
    candidates: [{ content: { role: "model", parts: [{ text }, ...functionCalls(calls)] }, finishReason: "STOP", index: 0 }],
    modelVersion: "gemini",
    responseId: "response-1",
    ...(told && {
      usageMetadata: {
        promptTokenCount: told.input,
        cachedContentTokenCount: told.cachedInput,
        candidatesTokenCount: told.output - told.reasoning,
        thoughtsTokenCount: told.reasoning,
        totalTokenCount: told.input + told.output,
      },
    }),
  };
}

function functionCalls(calls: Said["calls"]): Record<string, unknown>[] {
  return calls.map(({ name, input }) => ({ functionCall: { name, args: input } }));
}
