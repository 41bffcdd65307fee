import { z } from "zod";
import { applyChange } from "./change.js";
import { inWords, outcomeOf, submission, submitCommand } from "./submission.js";
import { tool } from "./tool.js";

export const checkCandidate = tool({
  name: "check_candidate",
  description:
    "Says whether your working copy, with a change if you give one, would be admitted as a trial; changes, measures and spends nothing.",
  roles: ["researcher"],
  input: z.object({ ...submission, hypothesis: submission.hypothesis.optional() }),
  run(given, input) {
    const context = { ...given, workbench: given.workbench.copy() };
    applyChange(context, input);
    const outcome = outcomeOf(context.foresee(submitCommand(context, { ...input, hypothesis: input.hypothesis ?? "a check" })));
    return "trial" in outcome ? { admissible: true } : { admissible: false, problems: inWords(outcome.violations) };
  },
});
