import { z } from "zod";
import { applyChange } from "./change.js";
import { inWords, outcomeOf, submission, submitCommand } from "./submission.js";
import { tool } from "./tool.js";

export const checkCandidate = tool({
  name: "check_candidate",
  description: "Says whether your working copy, with a change if you give one, would be admitted as a trial; measures and spends nothing.",
  roles: ["researcher"],
  input: z.object({ ...submission, hypothesis: submission.hypothesis.optional() }),
  run(context, input) {
    applyChange(context, input);
    const outcome = outcomeOf(context.foresee(submitCommand(context, { ...input, hypothesis: input.hypothesis ?? "a check" })));
    return "trial" in outcome ? { admissible: true } : { admissible: false, problems: inWords(outcome.violations) };
  },
});
