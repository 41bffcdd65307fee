import { z } from "zod";
import { trialView } from "../../core/harness/session-views.js";
import { failureOf } from "../../core/harness/views.js";
import type { BlobReference } from "../../core/protocol/ids.js";
import { namedTrial } from "./named-trial.js";
import { type ToolContext, tool } from "./tool.js";

/** Characters of a failed stage's output that are shown, from its end. */
const shownOutput = 8000;

export const readTrial = tool({
  name: "read_trial",
  description: "One trial: status, values, estimate, and for a failed one why, with the end of its own output.",
  roles: ["researcher", "reviewer"],
  input: z.object({ trial: z.string().describe("such as t3; t0 is the baseline") }),
  run(context, { trial: id }) {
    const trial = namedTrial(context, id);
    const failure = failureOf(context.state, trial);
    const output = failure?.output ?? null;
    const shown = output === null ? null : `${textOf(context, output.stdout)}\n${textOf(context, output.stderr)}`.slice(-shownOutput);
    return { ...trialView(context.state, trial.id, context.role), output: shown };
  },
});

function textOf({ blobs }: ToolContext, { blob }: BlobReference): string {
  return new TextDecoder().decode(blobs.blob(blob));
}
