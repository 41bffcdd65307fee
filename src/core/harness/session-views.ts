import { primaryMetric } from "../protocol/measurement.js";
import { configurationOf, type RunState, type Trial, trialOf } from "./state.js";
import { steeringView } from "./views.js";

/** Whose eyes a session or an MCP client has: a reviewer judges results without knowing what they were meant to show. */
export const sessionRoles = ["researcher", "reviewer"] as const;
export type SessionRole = (typeof sessionRoles)[number];

/** A trial as a session may see it. Confirmation seeds and held-out results are not in it. */
export interface TrialView {
  readonly trial: string;
  readonly phase: Trial["phase"];
  readonly status: Trial["status"];
  readonly stage: string | null;
  readonly reason: string;
  readonly retracted: boolean;
  readonly base: string | null;
  /** The operator's hand on it: nothing is to start from a held one, the next improvements from a pinned one. */
  readonly steer: "held" | "pinned" | null;
  readonly values: Trial["values"];
  /** Mean over confirmations on fresh seeds. */
  readonly estimate: Trial["estimate"];
  readonly isSelfReported: boolean;
  readonly wallMs: number;
  readonly cpuMs: number;
  /** What its plan says; not for a reviewer. */
  readonly plan?: { readonly hypothesis: string; readonly expectedGain: number | null };
}

export function trialView(state: RunState, id: string, role: SessionRole): TrialView {
  const trial = trialOf(state, id);
  const { phase, status, stage, reason, retracted, base, values, estimate, wallMs, cpuMs } = trial;
  const seen = {
    trial: id,
    phase,
    status,
    stage,
    reason,
    retracted,
    base,
    steer: state.steers[id]?.steer ?? null,
    values,
    estimate,
    isSelfReported: trial.selfReported,
    wallMs,
    cpuMs,
  };
  return role === "reviewer" ? seen : { ...seen, plan: { hypothesis: trial.hypothesis, expectedGain: trial.expectedGain } };
}

/** Where the run stands: the best, the newest and the best valid trials, what is open and what is left. */
export function frontierView(state: RunState, role: SessionRole): unknown {
  const { budget, environment } = configurationOf(state);
  const left = (cap: number | null, dimension: keyof RunState["budget"]["spent"]): number | null =>
    cap === null ? null : Math.max(0, cap - state.budget.spent[dimension] - state.budget.reserved[dimension]);
  const listed = [...new Set(["t0", ...state.topValid, ...state.recentValid])].filter((id) => Object.hasOwn(state.trials, id));
  return {
    stateVersion: state.version,
    phase: state.phase,
    metric: primaryMetric(environment),
    noise: state.noise,
    leader: state.leader,
    trials: listed.sort((a, b) => Number(a.slice(1)) - Number(b.slice(1))).map((id) => trialView(state, id, role)),
    open: state.openTrials,
    statuses: state.statuses,
    notesOfTheOperator: state.notes,
    steeredByTheOperator: steeringView(state),
    trialsLeft: left(budget.trials, "trials"),
    tokensLeft: left(budget.tokens, "tokens"),
    costUsdLeft: left(budget.costUsd, "costUsd"),
  };
}
