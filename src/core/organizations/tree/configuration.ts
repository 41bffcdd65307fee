import { z } from "zod";
import { trialStatus } from "../../protocol/status.js";

/** Defaults are AIDE's (Recovering Wasted Compute in Autoresearch Agents, section 2, and the released agent's settings). */
export const treeConfiguration = z.strictObject({
  policy: z.enum(["greedy"]).default("greedy"),
  /** Parentless nodes to make before anything else; failed ones count. */
  drafts: z.number().int().min(1).max(1000).default(5),
  /** Chance that a step looks for a buggy leaf first. */
  debugProbability: z.number().min(0).max(1).default(0.5),
  /**
   * A buggy leaf at the end of more debug edges than this is left alone. As published, a leaf at exactly this depth is
   * debugged once more: 3 allows four debug steps in a row.
   */
  maxDebugDepth: z.number().int().min(0).max(100).default(3),
  /** Statuses whose nodes are never debugged; as published, none. */
  terminal: z.array(trialStatus).default([]),
});
export type TreeConfiguration = z.infer<typeof treeConfiguration>;
