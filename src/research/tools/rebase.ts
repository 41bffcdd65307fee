import { z } from "zod";
import { isHeld } from "../../core/harness/steering.js";
import { namedTrial } from "./named-trial.js";
import { ToolProblem, tool } from "./tool.js";

export const rebase = tool({
  name: "rebase",
  description: "Starts your working copy anew from a trial's candidate; your changes since are gone. Your next trial is compared with it.",
  roles: ["researcher"],
  input: z.object({ trial: z.string().describe("such as t3; t0 is the baseline") }),
  run(context, { trial: id }) {
    const trial = namedTrial(context, id);
    if (trial.retracted) throw new ToolProblem(`${trial.id} was retracted: nothing may start from it`);
    if (isHeld(context.state, trial.id)) throw new ToolProblem(`${trial.id} is held by the operator: nothing is to start from it for now`);
    context.workbench.rebase(trial.id, trial.candidate.blob);
    return { base: trial.id, files: context.workbench.files() };
  },
});
