import type { Researcher, RolePrompt, RoleRequest } from "../../../core/ports/researcher.js";
import { callOptions } from "./call-options.js";
import { ModelAsker, type ModelResearcherOptions } from "./model-asker.js";
import { roomOf } from "./room.js";
import type { ModelSettings } from "./settings.js";
import { promptBytesOf } from "./worst-case.js";

/**
 * A researcher that is a language model, asked over HTTP.
 * @throws RangeError for settings that name no provider, or lack its base URL
 */
export function modelResearcher(options: ModelResearcherOptions): Researcher {
  const asker = new ModelAsker(options);
  return {
    name: options.name,
    async answer(request, signal) {
      const { content, usage, model } = await asker.ask(request, signal, (provider, redact) => {
        const prompt = redacted(request, options.settings, redact);
        return { bytes: promptBytesOf(prompt), options: (without) => callOptions(provider, options.settings, prompt, without) };
      });
      const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
      return { raw: Buffer.from(options.redact(text)), usage, model };
    },
  };
}

/** A secret that got into a view or an answer goes to no provider. */
function redacted(request: RoleRequest, settings: ModelSettings, redact: (text: string) => string): RolePrompt {
  const { system, user, answer, repair } = request.prompt(roomOf(settings) ?? undefined);
  return {
    system: redact(system),
    user: redact(user),
    answer,
    repair: repair === null ? null : { answer: redact(repair.answer), message: redact(repair.message) },
  };
}
