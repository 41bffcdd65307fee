import { z } from "zod";
import { isRunning } from "../../core/harness/due.js";
import { trialView } from "../../core/harness/session-views.js";
import { namedTrial } from "./named-trial.js";
import { tool } from "./tool.js";

export const waitForTrial = tool({
  name: "wait_for_trial",
  description:
    "Waits until a trial has ended, confirmation included, and gives its result. Call it again if it says that the trial is still open.",
  roles: ["researcher", "reviewer"],
  input: z.object({
    trial: z.string().describe("such as t3; t0 while the baseline is still calibrated"),
    seconds: z.number().min(0).max(600).optional().describe("wait at most this long; default 50"),
  }),
  async run(context, { trial: id, seconds = 50 }, signal) {
    const trial = namedTrial(context, id);
    if (trial.phase !== "ended" && isRunning(context.state)) {
      const patience = AbortSignal.timeout(seconds * 1000);
      // That patience is over is no failure: the trial's state says so.
      await context.ended(trial.id, AbortSignal.any([signal, patience])).catch(() => undefined);
      signal.throwIfAborted();
    }
    return trialView(context.state, trial.id, context.role);
  },
});
