import type { InspectedRun } from "./inspect.js";

/** What a person can do about a run that would have to be over: one that is finishing needs no second word, but a process. */
export function wayToEnd({ state, name, owner }: Pick<InspectedRun, "state" | "name" | "owner">): string {
  const isStopped = state.phase === "paused" || state.phase === "suspended";
  if ((isStopped ? state.resumeTo : state.phase) !== "finishing") return `\`trialist finish ${name} --reason …\` ends it.`;
  if (owner !== null && !isStopped) return "Wait for its end: what is open is coming to it.";
  return `\`trialist resume ${name}\` brings it to its end.`;
}
