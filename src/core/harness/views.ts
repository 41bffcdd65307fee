import type { BlobReference, ManifestReference } from "../protocol/ids.js";
import { primaryMetric } from "../protocol/measurement.js";
import { statusClasses, type TrialStatus } from "../protocol/status.js";
import { activeTime, configurationOf, type RunState, type Trial, trialOf } from "./state.js";

/**
 * What a proposer may know: built by one function from one version of the state, and bounded. Contents are named by
 * blob and filled in when the call is made. Nothing of the held-out data is in the state, so nothing of it can be here;
 * confirmation seeds are in the state and are left out.
 */
export interface ProposalView {
  readonly role: string;
  readonly base: {
    readonly trial: string;
    readonly status: TrialStatus | null;
    readonly value: number | null;
    readonly hypothesis: string;
    readonly candidate: ManifestReference;
  };
  readonly failure: {
    readonly status: TrialStatus;
    readonly stage: string;
    readonly reason: string;
    /** Of a candidate's own stage alone: what an evaluator printed may come from the labels. */
    readonly output: { readonly stdout: BlobReference; readonly stderr: BlobReference } | null;
  } | null;
  /** Valid trials: the best and the newest, oldest first. */
  readonly memory: readonly { readonly trial: string; readonly hypothesis: string; readonly status: TrialStatus; readonly value: number }[];
  readonly best: { readonly trial: string; readonly value: number } | null;
  /** Where the environment declares numbers that an optimizer may choose: the newest valid trials, oldest first. */
  readonly observations?: readonly { readonly trial: string; readonly candidate: ManifestReference; readonly score: number }[];
  /** What the operator wants known, the newest last. */
  readonly notes: readonly string[];
  /** The operator's hand on trials, the newest last; missing where there is none. */
  readonly steering?: Steering;
  readonly trialsLeft: number | null;
  readonly activeMsLeft: number | null;
}

export function proposalView(state: RunState, role: string, base: string, now: number): ProposalView {
  const configuration = configurationOf(state);
  const metric = primaryMetric(configuration.environment).name;
  const trial = trialOf(state, base);
  const remembered = [...new Set([...state.topValid, ...state.recentValid])].map((id) => trialOf(state, id));
  const { trials, wallMs } = configuration.budget;
  return {
    role,
    base: {
      trial: trial.id,
      status: trial.status,
      value: trial.values?.[metric] ?? null,
      hypothesis: trial.hypothesis,
      candidate: trial.candidate,
    },
    failure: failureOf(state, trial),
    memory: remembered
      .sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)))
      .flatMap((each) => {
        const value = each.values?.[metric];
        return each.status === null || value === undefined
          ? []
          : [{ trial: each.id, hypothesis: each.hypothesis, status: each.status, value }];
      }),
    best: state.leader === null ? null : { trial: state.leader.trial, value: state.leader.values[metric] ?? 0 },
    ...(configuration.environment.surface.parameters === undefined ? {} : { observations: observations(state) }),
    notes: [...state.notes],
    ...(Object.keys(state.steers).length === 0 ? {} : { steering: steeringView(state) }),
    trialsLeft: trials === null ? null : trials - state.budget.spent.trials - state.budget.reserved.trials,
    activeMsLeft: wallMs === null ? null : Math.max(0, wallMs - activeTime(state, now)),
  };
}

/** Measured candidates that an optimizer is shown: enough for a model of a few dozen numbers, and bounded. */
const observed = 200;

function observations(state: RunState): NonNullable<ProposalView["observations"]> {
  const metric = primaryMetric(configurationOf(state).environment).name;
  const found: { trial: string; candidate: ManifestReference; score: number }[] = [];
  for (let number = state.counters.trial; number >= 0 && found.length < observed; number--) {
    const trial = state.trials[`t${number}`];
    const score = trial?.values?.[metric];
    if (trial?.status == null || trial.retracted || statusClasses[trial.status] !== "valid" || score === undefined) continue;
    found.push({ trial: trial.id, candidate: trial.candidate, score });
  }
  return found.reverse();
}

/** Which trials the operator holds, and which the next improvements start from. */
export interface Steering {
  readonly held: readonly string[];
  readonly pinned: readonly string[];
}

const shownSteers = 12;

export function steeringView(state: RunState): Steering {
  const all = Object.entries(state.steers);
  const which = (wanted: "held" | "pinned"): string[] =>
    all.flatMap(([trial, { steer }]) => (steer === wanted ? [trial] : [])).slice(-shownSteers);
  return { held: which("held"), pinned: which("pinned") };
}

/** Why a trial failed, for whoever proposes. */
export function failureOf(state: RunState, trial: Trial): ProposalView["failure"] {
  if (trial.failure === null || trial.status === null) return null;
  const { stage, stdout, stderr } = trial.failure;
  const own = configurationOf(state).environment.stages.find((each) => each.name === stage)?.trust === "candidate";
  return { status: trial.status, stage, reason: trial.reason, output: own ? { stdout, stderr } : null };
}

/** Views by name; a new role's view is one function and one line here. */
export const viewBuilders = { proposal: proposalView };
export type ViewName = keyof typeof viewBuilders;
