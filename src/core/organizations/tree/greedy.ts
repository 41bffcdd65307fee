import type { Draw } from "../../harness/draw.js";
import type { TreeFold } from "./fold.js";

/** A step of the tree search: what to do, and from which node; null base: from the baseline. */
export interface TreeStep {
  readonly stage: "draft" | "debug" | "improve";
  readonly base: string | null;
}

/**
 * AIDE's search policy, in its order: enough drafts first; then, by a coin, a buggy leaf; then a draft while nothing
 * works; else the best node is improved.
 */
export function greedy(fold: TreeFold, draw: Draw): TreeStep {
  const { drafts, debugProbability } = fold.configuration;
  if (fold.drafts < drafts) return { stage: "draft", base: null };
  const { debuggable, decisions } = fold;
  if (draw.uniform("tree/debug-coin", decisions) < debugProbability && debuggable.length > 0) {
    return { stage: "debug", base: debuggable[draw.pick("tree/debug-leaf", decisions, debuggable.length)] ?? null };
  }
  return fold.best === null ? { stage: "draft", base: null } : { stage: "improve", base: fold.best };
}
