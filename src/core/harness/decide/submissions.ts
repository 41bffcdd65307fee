import { organizationNamed } from "../../organizations/registry.js";
import { exceeds } from "../../protocol/budget.js";
import type { CandidateProposal, Command, PlanProposal, Submission } from "../../protocol/commands.js";
import type { RunEvent, Violation } from "../../protocol/events.js";
import { violation } from "../admission.js";
import { configurationOf, type RunState, trialNamed } from "../state.js";
import { candidateViolations } from "./candidates.js";
import { type Handler, only, refuse } from "./decision.js";

type Of<T extends Command["type"]> = Extract<Command, { type: T }>;

/** Push: a session, an MCP client or a person hands in a candidate that nobody asked for. Same door, same rules. */
export const submit: Handler<Of<"submit">> = (state, command) => {
  if (state.phase !== "searching") throw refuse("a run that is searching", `a run that is ${state.phase}`);
  const configuration = configurationOf(state);
  const base = state.trials[command.base];
  if (base === undefined || base.retracted) throw refuse("a base trial of this run that stands", command.base);
  if ("session" in command.by && state.sessions[command.by.session] === undefined) throw refuse("an open session", command.by.session);
  const cap = exceeds(state.budget, configuration.budget, { trials: 1, costUsd: 0, tokens: 0, computeMs: 0 });
  const violations = [
    ...planViolations(state, command.base, command.submission),
    ...candidateViolations(state, command.submission),
    ...(cap === null ? [] : [violation("budget", `the ${cap} budget is used up`, null)]),
  ];
  const plan = `p${state.counters.plan + 1}`;
  const admission: Admission = {
    by: command.by,
    base: command.base,
    comparator: command.base,
    move: {},
    bestAtView: state.leader?.trial ?? null,
  };
  if (violations.length > 0)
    return only(proposed(plan, command.submission, admission), { type: "plan.refused", data: { plan, violations } });
  const session: RunEvent[] = "session" in command.by ? [{ type: "session.submitted", data: { session: command.by.session, plan } }] : [];
  return only(...admitSubmission(state, command.submission, admission), ...session);
};

export function planViolations(state: RunState, base: string, proposal: PlanProposal): readonly Violation[] {
  const organization = organizationNamed(configurationOf(state).organization.name);
  const unknown = proposal.respondsTo.filter((id) => trialNamed(state, id) === null);
  return [
    ...unknown.map((id) => violation("unknown_trial", `plan.responds_to names ${id}, and this run has no such trial`, null)),
    ...(organization.admit?.(state.organization, state, { base, commitment: proposal.commitment }) ?? []),
  ];
}

export interface Admission {
  readonly by: { readonly call: string } | { readonly session: string } | { readonly submitter: string };
  readonly base: string;
  readonly comparator: string;
  readonly move: Readonly<Record<string, string | number | null>>;
  readonly bestAtView: string | null;
}

function proposed(plan: string, proposal: PlanProposal, admission: Admission): RunEvent {
  return {
    type: "plan.proposed",
    data: {
      plan,
      by: admission.by,
      base: admission.base,
      parents: [admission.base],
      respondsTo: [...proposal.respondsTo],
      hypothesis: proposal.hypothesis,
      expectedGain: proposal.expectedGain,
      commitment: { ...proposal.commitment },
      comparator: admission.comparator,
    },
  };
}

export function admitPlan(plan: string, proposal: PlanProposal, admission: Admission): RunEvent[] {
  return [proposed(plan, proposal, admission), { type: "plan.admitted", data: { plan } }];
}

export function admitSubmission(state: RunState, submission: Submission, admission: Admission): RunEvent[] {
  const plan = `p${state.counters.plan + 1}`;
  return [...admitPlan(plan, submission, admission), ...admitTrial(state, plan, submission, admission)];
}

export function admitTrial(
  state: RunState,
  plan: string | null,
  proposal: Pick<CandidateProposal, "candidate">,
  admission: Admission,
): RunEvent[] {
  const trial = `t${state.counters.trial + 1}`;
  const best = { bestAtView: admission.bestAtView, bestAtSubmission: state.leader?.trial ?? null };
  return [
    {
      type: "trial.admitted",
      data: {
        trial,
        kind: "search",
        plan,
        candidate: proposal.candidate,
        base: admission.base,
        parents: [admission.base],
        move: { ...admission.move },
        name: null,
        ...best,
      },
    },
    {
      type: "measurement.requested",
      data: {
        measurement: `m${state.counters.measurement + 1}`,
        trial,
        subject: trial,
        reason: "first",
        purpose: "in-loop",
        pair: 0,
        round: 0,
        seed: configurationOf(state).environment.seed,
      },
    },
  ];
}
