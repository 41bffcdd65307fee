import { z } from "zod";
import { worstCase } from "../../core/harness/decide/measurements.js";
import { configurationOf } from "../../core/harness/state.js";
import { nothing } from "../../core/protocol/budget.js";
import { preflightStages } from "../engine/preflight.js";
import { applyChange, change } from "./change.js";
import { ToolProblem, tool } from "./tool.js";

export const runPreflight = tool({
  name: "run_preflight",
  description:
    "Runs the environment's preflight on your working copy, with a change if you give one: no trial is spent and nothing is measured.",
  roles: ["researcher"],
  input: z.object(change),
  async run(context, input, signal) {
    const { session, state, services, workbench, dispatch } = context;
    const stages = preflightStages(configurationOf(state).environment.stages);
    if (stages.length === 0)
      throw new ToolProblem("this environment has no preflight: check_candidate says whether a trial would be admitted");
    if (session === null) throw new ToolProblem("the baseline is still being calibrated: wait_for_trial t0 first");
    applyChange(context, input);
    dispatch({ type: "reserve_turn", session, reservation: worstCase(stages) });
    let computeMs = worstCase(stages).computeMs;
    try {
      const { cpuMs, ...result } = await services.preflight(session, workbench.snapshot().manifest, signal);
      computeMs = cpuMs;
      return result;
    } finally {
      if (state.sessions[session]?.isTurnOpen === true)
        dispatch({ type: "end_turn", session, usage: { ...nothing, computeMs }, model: null, traffic: null });
    }
  },
});
