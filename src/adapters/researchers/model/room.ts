import type { ModelSettings } from "./settings.js";

/** Bytes of code and prose that a token holds at least, on the whole; what is longer is refused by the server, and said. */
const bytesPerToken = 2.5;
/** Tokens that are left for the schema, a repair and the marks around messages. */
const spareTokens = 512;

/** What the model takes in, in bytes; null where nobody said. */
export function roomOf({ contextTokens, maxOutputTokens }: ModelSettings): number | null {
  if (contextTokens === null) return null;
  return Math.max(0, Math.floor((contextTokens - maxOutputTokens - spareTokens) * bytesPerToken));
}
