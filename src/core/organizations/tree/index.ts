import type { Draw } from "../../harness/draw.js";
import type { Organization } from "../organization.js";
import { type TreeConfiguration, treeConfiguration } from "./configuration.js";
import { evolveFold, initialFold, type TreeFold } from "./fold.js";
import { greedy, type TreeStep } from "./greedy.js";

/** Search policies over the same fold: UCT and Thompson sampling are a file and a line here. */
const policies: Readonly<Record<TreeConfiguration["policy"], (fold: TreeFold, draw: Draw) => TreeStep>> = { greedy };

/** Tree search over candidates: drafts, debug steps, improvements. */
export const tree: Organization<TreeFold, TreeConfiguration> = {
  name: "tree",
  roles: ["draft", "debug", "improve"],
  duplicates: "refuse",
  configure: (given) => treeConfiguration.parse(given),
  initial: initialFold,
  evolve: evolveFold,
  next(fold, _state, draw) {
    const step = policies[fold.configuration.policy](fold, draw);
    const base = step.base ?? "t0";
    return { kind: "call", role: step.stage, base, comparator: base, detail: { stage: step.stage } };
  },
};
