import type { RunState } from "../../harness/state.js";
import type { Organization } from "../organization.js";
import { type TreeConfiguration, treeConfiguration } from "./configuration.js";
import { evolveFold, initialFold, type TreeFold } from "./fold.js";
import { policies, type TreeStep } from "./policy.js";

/** Tree search over candidates: drafts, debug steps, improvements. */
export const tree: Organization<TreeFold, TreeConfiguration> = {
  name: "tree",
  roles: ["draft", "debug", "improve"],
  asks: "calls",
  isServed: () => false,
  hasOwnBaseline: false,
  duplicates: "refuse",
  configure: (given) => treeConfiguration.parse(given),
  initial: initialFold,
  evolve: evolveFold,
  next(fold, state, draw) {
    const step = policies[fold.configuration.policy](fold, draw);
    if (step === "wait") return { kind: "wait" };
    return {
      kind: "call",
      role: step.stage,
      base: step.base ?? "t0",
      comparator: comparatorOf(state, step),
      detail: { stage: step.stage },
    };
  },
};

/** What the step has to beat: its base; for a repair, whose base has no value, what the broken trial set out to beat. */
function comparatorOf(state: RunState, step: Exclude<TreeStep, "wait">): string {
  if (step.base === null) return "t0";
  if (step.stage !== "debug") return step.base;
  const plan = state.trials[step.base]?.plan ?? null;
  const comparator = plan === null ? undefined : state.plans[plan]?.comparator;
  return comparator === undefined || state.trials[comparator]?.retracted === true ? "t0" : comparator;
}
