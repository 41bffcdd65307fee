import type { JSONSchema7, LanguageModelV3CallOptions, LanguageModelV3Prompt } from "@ai-sdk/provider";
import type { SessionMessage, SessionModel, ToolCall, ToolDescription } from "../../../core/ports/session-model.js";
import { isDeeperThan } from "../../../core/protocol/depth.js";
import { commonOptions } from "./call-options.js";
import { ModelAsker, type ModelResearcherOptions } from "./model-asker.js";
import { roomOf } from "./room.js";
import { worstCaseOfRequest } from "./worst-case.js";

/**
 * A language model that works in a long session, with tools.
 * @throws RangeError for settings that name no provider, or lack its base URL
 */
export function sessionModel(options: ModelResearcherOptions): SessionModel {
  const asker = new ModelAsker(options);
  const { settings, price } = options;
  return {
    name: options.name,
    room: roomOf(settings),
    worstCase(messages, tools) {
      const { costUsd, tokens } = worstCaseOfRequest(settings.maxOutputTokens, price, bytesOf(messages, tools));
      return { trials: 0, costUsd, tokens, computeMs: 0 };
    },
    async turn(request, signal) {
      const { session, turn, seed, allowance, messages, tools } = request;
      const { content, usage, model } = await asker.ask({ call: session, round: turn, seed, allowance }, signal, (provider, redact) => ({
        bytes: bytesOf(messages, tools),
        options: (without) => ({
          ...commonOptions(provider, settings, without),
          prompt: promptOf(messages.map((message) => withoutSecrets(message, redact))),
          ...toolOptions(tools),
        }),
      }));
      const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
      const toolCalls = content.flatMap((part): ToolCall[] =>
        part.type === "tool-call" ? [{ id: part.toolCallId, name: part.toolName, input: part.input }] : [],
      );
      return { text, toolCalls, usage, model };
    },
  };
}

function toolOptions(tools: readonly ToolDescription[]): Pick<LanguageModelV3CallOptions, "tools" | "toolChoice"> {
  return {
    tools: tools.map(({ name, description, schema }) => ({ type: "function", name, description, inputSchema: schema as JSONSchema7 })),
    toolChoice: { type: "auto" },
  };
}

function promptOf(messages: readonly SessionMessage[]): LanguageModelV3Prompt {
  return messages.map((message): LanguageModelV3Prompt[number] => {
    if (message.role === "assistant") return { role: "assistant", content: [...saidBy(message), ...message.toolCalls.map(calledBy)] };
    if (message.role === "tool") {
      const output = { type: message.isError ? ("error-text" as const) : ("text" as const), value: message.text };
      return { role: "tool", content: [{ type: "tool-result", toolCallId: message.call.id, toolName: message.call.name, output }] };
    }
    if (message.role === "system") return { role: "system", content: message.text };
    return { role: "user", content: [{ type: "text", text: message.text }] };
  });
}

function withoutSecrets(message: SessionMessage, redact: (text: string) => string): SessionMessage {
  if (message.role !== "assistant") return { ...message, text: redact(message.text) };
  return { ...message, text: redact(message.text), toolCalls: message.toolCalls.map((call) => ({ ...call, input: redact(call.input) })) };
}

/** Providers refuse empty texts. */
function saidBy({ text }: { readonly text: string }): { type: "text"; text: string }[] {
  return text === "" ? [] : [{ type: "text", text }];
}

function calledBy({ id, name, input }: ToolCall): { type: "tool-call"; toolCallId: string; toolName: string; input: unknown } {
  return { type: "tool-call", toolCallId: id, toolName: name, input: parsedOr(input) };
}

/** What is no JSON goes back as an empty object: providers take nothing else, and the tool's result says what was wrong. */
function parsedOr(input: string): unknown {
  try {
    const parsed: unknown = JSON.parse(input);
    return isDeeperThan(parsed, 32) ? {} : parsed;
  } catch {
    return {};
  }
}

function bytesOf(messages: readonly SessionMessage[], tools: readonly ToolDescription[]): number {
  return Buffer.byteLength(JSON.stringify(messages)) + Buffer.byteLength(JSON.stringify(tools));
}
