import { replayingFetch } from "../adapters/researchers/model/replaying-fetch.js";
import { ReplayDiffersError } from "../adapters/researchers/model/traffic.js";
import { type Researcher, ResearcherFailedError } from "../core/ports/researcher.js";
import type { ReplayHost } from "../research/replay/replay-run.js";
import { modelPrefix } from "./model-names.js";
import { modelResearcherNamed } from "./model-researchers.js";
import type { Secrets } from "./secrets.js";

/**
 * Puts a question to the model that answered it, through the same provider's code, over the recorded traffic and nothing
 * else. One researcher for the whole replay, since a model's researcher remembers which parameters were refused.
 */
export function reanswerer(secrets: Secrets): ReplayHost["reanswer"] {
  const researchers = new Map<string, Researcher>();
  let wire: typeof fetch = () => Promise.reject(new Error("no exchange is on record"));
  return async (name, settings, request, traffic) => {
    if (!name.startsWith(modelPrefix)) return { raw: null, difference: null };
    wire = replayingFetch(traffic);
    const researcher =
      researchers.get(name) ?? modelResearcherNamed(name, { settings, models: {}, secrets, offline: (input, init) => wire(input, init) });
    researchers.set(name, researcher);
    try {
      const { raw } = await researcher.answer(request, new AbortController().signal);
      return { raw, difference: null };
    } catch (error) {
      if (error instanceof ReplayDiffersError || error instanceof ResearcherFailedError) return { raw: null, difference: error.message };
      throw error;
    }
  };
}
