import { z } from "zod";
import { applyChange } from "./change.js";
import { inWords, outcomeOf, submission, submitCommand } from "./submission.js";
import { ToolProblem, tool } from "./tool.js";

export const submitTrial = tool({
  name: "submit_trial",
  description:
    "Hands your working copy in, with a change if you give one, to be measured as a trial. Costs one trial. wait_for_trial gives its result.",
  roles: ["researcher"],
  input: z.object(submission),
  run(context, input) {
    applyChange(context, input);
    const outcome = outcomeOf(context.dispatch(submitCommand(context, input)));
    if ("trial" in outcome) return { trial: outcome.trial };
    throw new ToolProblem(`not admitted, and nothing was spent:\n${inWords(outcome.violations)}`);
  },
});
