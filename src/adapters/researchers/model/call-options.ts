import type { JSONSchema7, LanguageModelV3CallOptions, LanguageModelV3Prompt } from "@ai-sdk/provider";
import type { RolePrompt } from "../../../core/ports/researcher.js";
import type { Droppable } from "./dropped-parameters.js";
import type { ModelProvider } from "./provider.js";
import type { ModelSettings } from "./settings.js";

/** A question as providers take it, without what the model has refused. */
export function callOptions(
  provider: ModelProvider,
  settings: ModelSettings,
  prompt: RolePrompt,
  dropped: ReadonlySet<Droppable>,
): LanguageModelV3CallOptions {
  return {
    ...commonOptions(provider, settings, dropped),
    prompt: messagesOf(prompt),
    responseFormat: responseFormatOf(settings, prompt, dropped),
  };
}

/** What every question says beside its messages. */
export function commonOptions(
  provider: ModelProvider,
  settings: ModelSettings,
  dropped: ReadonlySet<Droppable>,
): Omit<LanguageModelV3CallOptions, "prompt"> {
  const { temperature, topP } = settings.parameters;
  const renamed = dropped.has("maxTokens");
  return {
    ...(renamed ? {} : { maxOutputTokens: settings.maxOutputTokens }),
    ...(temperature === undefined || dropped.has("temperature") ? {} : { temperature }),
    ...(topP === undefined || dropped.has("topP") ? {} : { topP }),
    providerOptions: provider.specialOptions(settings, {
      reasoningEffort: dropped.has("reasoningEffort") ? null : settings.reasoningEffort,
      maxCompletionTokens: renamed ? settings.maxOutputTokens : null,
    }),
  };
}

/** A repair goes on where the answer before it left off. */
function messagesOf({ system, user, repair }: RolePrompt): LanguageModelV3Prompt {
  const messages: LanguageModelV3Prompt = [
    { role: "system", content: system },
    { role: "user", content: [{ type: "text", text: user }] },
  ];
  if (repair === null) return messages;
  // Providers refuse an empty message; the model is to know all the same that nothing came.
  const answer = repair.answer.trim() === "" ? "(no answer)" : repair.answer;
  return [
    ...messages,
    { role: "assistant", content: [{ type: "text", text: answer }] },
    { role: "user", content: [{ type: "text", text: repair.message }] },
  ];
}

function responseFormatOf(
  { structuredOutput }: ModelSettings,
  { answer }: RolePrompt,
  dropped: ReadonlySet<Droppable>,
): NonNullable<LanguageModelV3CallOptions["responseFormat"]> {
  if (structuredOutput === "none" || dropped.has("json")) return { type: "text" };
  if (structuredOutput === "json" || dropped.has("schema")) return { type: "json" };
  return { type: "json", name: answer.name, schema: answer.schema as JSONSchema7 };
}
