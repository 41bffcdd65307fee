import type { Draw } from "../../harness/draw.js";
import type { TreeConfiguration } from "./configuration.js";
import type { TreeFold, TreeStage } from "./fold.js";

/** A step of the search: what to do and from which node, null for the baseline; or `wait`, until something open ends. */
export type TreeStep = { readonly stage: TreeStage; readonly base: string | null } | "wait";

export type TreePolicy = (fold: TreeFold, draw: Draw) => TreeStep;

const draft: TreeStep = { stage: "draft", base: null };

/**
 * AIDE's search policy, in its order: enough drafts first; then, by a coin, a buggy leaf; then a draft while nothing
 * works; else the best node is improved. In a serial run no draft is open at the third step; in a parallel one it waits
 * for them, so that no more drafts are made than a serial run would make; not for those that the operator holds. Where
 * the operator has pinned trials, they are improved instead of the best, in turn.
 */
const greedy: TreePolicy = ({ configuration, decisions, drafts, heldDrafts, debuggable, best, pins, pinned }, draw) => {
  if (drafts.ended + drafts.open < configuration.drafts) return draft;
  if (draw.uniform("tree/debug-coin", decisions) < configuration.debugProbability && debuggable.length > 0) {
    return { stage: "debug", base: debuggable[draw.pick("tree/debug-leaf", decisions, debuggable.length)] ?? null };
  }
  const improved = pins[pinned % pins.length] ?? best;
  if (improved !== null) return { stage: "improve", base: improved };
  return drafts.open > heldDrafts ? "wait" : draft;
};

/** Policies over one fold: UCT and Thompson sampling are a function and a line here. */
export const policies: Readonly<Record<TreeConfiguration["policy"], TreePolicy>> = { greedy };
