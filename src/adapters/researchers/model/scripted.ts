import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { RoleRequest } from "../../../core/ports/researcher.js";
import { openaiCompatible } from "./openai-compatible.js";
import type { ModelProvider } from "./provider.js";
import type { ModelSettings } from "./settings.js";

/** `match`: the answer is for prompts that hold these words. */
const scriptedAnswers = z
  .array(z.union([z.string(), z.strictObject({ match: z.string().min(1).optional(), answer: z.union([z.string(), z.json()]) })]))
  .min(1);

/**
 * A model that is a table of answers: `model` is the path of its JSON file. It goes the way of every other model, down to
 * the record of its traffic, so that what is tested and shown with it holds for them.
 */
export const scripted: ModelProvider = {
  name: "scripted",
  keyVariable: null,
  needsBaseUrl: false,
  load: (settings, _key, fetch) => openaiCompatible.load({ ...settings, baseUrl: "http://scripted.invalid/v1" }, null, fetch),
  specialOptions: (settings, options) => openaiCompatible.specialOptions(settings, options),
  transport: (settings, request) => async (_input, init) => {
    const body = String(init?.body);
    const answer = await answerOf(settings, request, body).catch((error: unknown) => ({
      problem: error instanceof Error ? error.message : String(error),
    }));
    // The same would come again: it is refused as a server would refuse it, and costs nothing.
    if (typeof answer !== "string")
      return Response.json(
        { error: { message: `the table of answers ${settings.model} cannot be read: ${answer.problem}`.slice(0, 1000) } },
        { status: 400 },
      );
    // Four bytes a token is what text in English comes to.
    const [input, output] = [tokens(body), tokens(answer)];
    return Response.json({
      id: `scripted-${request.call}.${request.round}`,
      object: "chat.completion",
      model: settings.model,
      choices: [{ index: 0, message: { role: "assistant", content: answer }, finish_reason: "stop" }],
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    });
  },
};

/** By the call's number, not by how often was asked: a resumed run gets the answer that the undisturbed one would. */
async function answerOf(settings: ModelSettings, request: Pick<RoleRequest, "call" | "round">, body: string): Promise<string> {
  const table = scriptedAnswers.parse(JSON.parse(await readFile(settings.model, "utf8")));
  const entries = table.map((entry) => (typeof entry === "string" ? { match: undefined, answer: entry } : entry));
  const said = JSON.stringify((JSON.parse(body) as { messages: unknown }).messages);
  const matching = entries.filter(({ match }) => match !== undefined && said.includes(JSON.stringify(match).slice(1, -1)));
  const choice = matching.length > 0 ? matching : entries.filter(({ match }) => match === undefined);
  const number = Number.parseInt(request.call.replace(/^\D+/, ""), 10) || 1;
  const answer = choice[(number + request.round - 2) % choice.length]?.answer ?? "";
  return typeof answer === "string" ? answer : JSON.stringify(answer);
}

function tokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}
