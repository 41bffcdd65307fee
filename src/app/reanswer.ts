import { type Droppable, droppable } from "../adapters/researchers/model/dropped-parameters.js";
import { replayingFetch } from "../adapters/researchers/model/replaying-fetch.js";
import { ReplayDiffersError } from "../adapters/researchers/model/traffic.js";
import { ResearcherFailedError } from "../core/ports/researcher.js";
import type { ReplayHost } from "../research/replay/replay-run.js";
import { modelPrefix } from "./model-names.js";
import { modelResearcherNamed } from "./model-researchers.js";
import type { Secrets } from "./secrets.js";

/**
 * Puts a question to the model that answered it, through the same provider's code, over the recorded traffic and nothing
 * else. Which parameters its researcher had learnt to leave out by then is on nobody's record, and shows in the first
 * request: what fits that is taken, and all of the traffic has to fit.
 */
export function reanswerer(secrets: Secrets): ReplayHost["reanswer"] {
  return async (name, settings, request, traffic) => {
    if (!name.startsWith(modelPrefix)) return { raw: null, difference: null };
    let difference: string | null = null;
    for (const dropped of subsets(droppable)) {
      const offline = { fetch: replayingFetch(traffic), dropped };
      try {
        const researcher = modelResearcherNamed(name, { settings, models: {}, secrets, offline });
        const { raw } = await researcher.answer(request, new AbortController().signal);
        return { raw, difference: null };
      } catch (error) {
        if (!(error instanceof ReplayDiffersError || error instanceof ResearcherFailedError)) throw error;
        difference ??= error.message;
      }
    }
    return { raw: null, difference };
  };
}

/** All subsets, the empty one first. */
function subsets(of: readonly Droppable[]): ReadonlySet<Droppable>[] {
  const masks = Array.from({ length: 2 ** of.length }, (_, mask) => mask);
  return masks.map((mask) => new Set(of.filter((_, place) => (mask >> place) % 2 === 1)));
}
