import { isOver } from "../../core/harness/due.js";
import { activeTime, type RunState, type Trial } from "../../core/harness/state.js";
import { gainOverBaseline, inLoopValue, isFailure, isValidSearch, metricOf } from "../../core/harness/trial-values.js";
import { isSelfReported } from "../../core/protocol/environment.js";
import { type TrialStatus, trialStatuses } from "../../core/protocol/status.js";
import type { Evidence } from "./evidence.js";
import { failureCauses } from "./failure-groups.js";
import { runHint } from "./failure-hint.js";
import { stepOf } from "./lineage.js";
import { saturationOf } from "./saturation-summary.js";
import { type FailureGroup, type GainSummary, type RunSummary, summarySchemaName } from "./summary-schema.js";
import { timeLeft } from "./time-left.js";
import { valueInterval } from "./value-interval.js";

export { type RunSummary, runSummary } from "./summary-schema.js";

/** Where a run stands, for people and programs. `now`: milliseconds since 1970. Works in every phase, the empty run included. */
export function summarize(state: RunState, now: number, evidence: Evidence = {}): RunSummary {
  return {
    schema: summarySchemaName,
    ...identityOf(state),
    ...resultsOf(state, evidence),
    ...progressOf(state, now),
    ...problemsOf(state, evidence),
    attribution: evidence.attribution ?? null,
  };
}

type Identity =
  | "run"
  | "state"
  | "reason"
  | "todo"
  | "forkedFrom"
  | "extensions"
  | "environment"
  | "organization"
  | "researchers"
  | "metric"
  | "rule"
  | "gate"
  | "sandbox";

function identityOf(state: RunState): Pick<RunSummary, Identity> {
  const configuration = state.configuration;
  const metric = metricOf(state);
  return {
    run: configuration?.run ?? null,
    state: state.phase,
    reason: state.reason,
    todo: state.todo,
    forkedFrom: state.forkedFrom === null ? null : { ...state.forkedFrom, inherited: { ...state.forkedFrom.inherited } },
    extensions: state.extensions.map((each) => ({ ...each })),
    environment: configuration === null ? null : { name: configuration.environment.name, digest: configuration.environmentDigest },
    organization: configuration?.organization.name ?? null,
    researchers: configuration?.researchers ?? {},
    metric: metric === null ? null : { name: metric.name, direction: metric.direction, selfReported: isSelfReported(metric) },
    rule: ruleOf(state),
    gate: configuration?.gate ?? null,
    sandbox: configuration?.sandbox ?? null,
  };
}

function ruleOf(state: RunState): RunSummary["rule"] {
  if (state.configuration === null) return null;
  const { rule, confirmations, level, minimumGain } = state.configuration.promotion;
  return { name: rule, confirmations, level, minimumGain };
}

type Results = "baseline" | "noise" | "calibrationReused" | "best" | "keeps" | "bestUnderAny" | "references";

function resultsOf(state: RunState, evidence: Evidence): Pick<RunSummary, Results> {
  const { noise } = state;
  return {
    baseline: noise === null ? null : { mean: noise.mean, sd: noise.sd, n: noise.n },
    noise,
    calibrationReused: reusedOf(state),
    best: bestOf(state, evidence),
    keeps: { underRule: state.statuses.keep ?? 0, underAny: state.keptUnderAny },
    bestUnderAny: bestUnderAny(state),
    references: Object.values(state.trials)
      .filter((trial) => trial.kind === "reference")
      .map((trial) => {
        const value = inLoopValue(state, trial);
        return {
          trial: trial.id,
          name: trial.name ?? "",
          status: trial.status,
          value,
          gainOverBaseline: gainOverBaseline(state, value),
          reason: trial.reason,
        };
      }),
  };
}

function reusedOf({ calibrationReused }: RunState): RunSummary["calibrationReused"] {
  return calibrationReused === null ? null : { run: calibrationReused.run, measuredAt: calibrationReused.measuredAt };
}

function bestOf(state: RunState, evidence: Evidence): RunSummary["best"] {
  const metric = metricOf(state);
  const trial = state.leader === null ? undefined : state.trials[state.leader.trial];
  const value = metric === null ? undefined : state.leader?.values[metric.name];
  if (trial === undefined || value === undefined) return null;
  const searched = trial.kind === "search";
  const verdictGain = searched ? leaderGain(state, trial, evidence) : null;
  return {
    trial: trial.id,
    value,
    interval: valueInterval(state, trial, evidence.blob),
    provisionalValue: inLoopValue(state, trial),
    confirmed: trial.kind !== "baseline" && trial.estimate !== null,
    hypothesis: trial.hypothesis,
    builtOn: searched
      ? stepOf(state, trial.id)
          .slice(0, -1)
          .map(({ id, hypothesis }) => ({ trial: id, hypothesis }))
      : [],
    selfReported: trial.selfReported,
    gain: verdictGain,
    overBaseline: searched ? overBaseline(state, value, verdictGain) : null,
    restsOnRetracted: retractedBelow(state, trial),
  };
}

/** The verdict against the leader as a gain; null where the trial was never judged. */
export function leaderGain(state: RunState, trial: Trial, evidence: Evidence = {}): GainSummary | null {
  if (trial.leaderVerdict === null) return null;
  const { gain: value, ...verdict } = trial.leaderVerdict;
  return { value, ...verdict, over: leaderJudgedAgainst(state, trial, evidence) };
}

/** The leader that a trial was judged against: from its confirmation or the ledger; else the keep before it, while no keep was retracted. */
function leaderJudgedAgainst(state: RunState, trial: Trial, evidence: Evidence): string | null {
  if (trial.confirmation !== null) return trial.confirmation.against;
  const recorded = evidence.timeline?.trials.get(trial.id)?.against;
  if (recorded !== undefined && recorded !== null) return recorded;
  const place = state.keeps.indexOf(trial.id);
  if (place <= 0 || Object.values(state.trials).some((each) => each.retracted && each.status === "keep")) return null;
  return state.keeps[place - 1] ?? null;
}

function overBaseline(state: RunState, value: number, verdictGain: GainSummary | null): NonNullable<RunSummary["best"]>["overBaseline"] {
  const paired = verdictGain?.over === "t0" ? verdictGain : null;
  const absolute = paired?.value ?? gainOverBaseline(state, value);
  if (absolute === null || state.noise === null) return null;
  const sign = metricOf(state)?.direction === "minimize" ? 1 : -1;
  const beside = paired === null ? null : value + sign * paired.value;
  const of = beside ?? state.noise.mean;
  return {
    absolute,
    percent: of === 0 ? null : (absolute / Math.abs(of)) * 100,
    beside,
    lower: paired?.lower ?? null,
    upper: paired?.upper ?? null,
  };
}

/** Retracted trials among all that a trial was built on or compared with, at any distance. */
export function retractedBelow(state: RunState, trial: Trial): string[] {
  const seen = new Set<string>();
  const open = [trial];
  for (let each = open.pop(); each !== undefined; each = open.pop()) {
    for (const id of [each.base, each.confirmation?.against ?? null, ...each.parents]) {
      const below = id === null || seen.has(id) ? undefined : state.trials[id];
      if (id !== null) seen.add(id);
      if (below !== undefined) open.push(below);
    }
  }
  return [...seen].filter((id) => state.trials[id]?.retracted === true).sort(byNumber);
}

function bestUnderAny(state: RunState): RunSummary["bestUnderAny"] {
  const metric = metricOf(state);
  const value = metric === null ? undefined : state.bestUnderAny?.values[metric.name];
  if (state.bestUnderAny === null || value === undefined) return null;
  const { trial } = state.bestUnderAny;
  return {
    trial,
    value,
    gainOverBaseline: trial === "t0" ? null : gainOverBaseline(state, value),
    retracted: state.trials[trial]?.retracted ?? false,
  };
}

type Progress = "trials" | "progress" | "saturation" | "time" | "spend" | "expectedCost";

function progressOf(state: RunState, now: number): Pick<RunSummary, Progress> {
  const open = state.openTrials.map((id) => state.trials[id]).filter((trial) => trial?.kind === "search");
  const activeMs = activeTime(state, now);
  return {
    trials: Object.fromEntries(trialStatuses.map((status) => [status, state.statuses[status] ?? 0])) as Record<TrialStatus, number>,
    progress: {
      done: state.searchTrialsEnded,
      cap: state.configuration?.budget.trials ?? null,
      open: open.length,
      provisional: open.filter((trial) => trial?.phase === "provisional").length,
      openCalls: Object.keys(state.calls).length,
      openSessions: Object.keys(state.sessions).length,
      queued: state.queue.length,
    },
    saturation: saturationOf(state),
    time: { activeMs, leftMs: timeLeft(state, now) },
    spend: { ...state.budget.spent, activeMs, reserved: { ...state.budget.reserved }, caps: state.configuration?.budget ?? null },
    expectedCost: expectedCost(state),
  };
}

function expectedCost(state: RunState): RunSummary["expectedCost"] {
  if (state.noise === null || state.configuration === null) return null;
  const { promotion, budget } = state.configuration;
  const { spent } = state.budget;
  const ended = state.searchTrialsEnded;
  const over = isOver(state.phase);
  const left = over || budget.trials === null || ended === 0 ? null : Math.max(0, budget.trials - ended);
  const project = (used: number): number => used + (used / ended) * (left ?? 0);
  return {
    pipelineWallMs: state.pipelineWallMs,
    pipelineCpuMs: state.pipelineCpuMs,
    passesPerConfirmation: promotion.rule === "confirmed" || promotion.rule === "compare" ? 2 * promotion.confirmations : 0,
    atCap:
      left === null
        ? null
        : { costUsd: project(spent.costUsd), tokens: Math.round(project(spent.tokens)), computeMs: project(spent.computeMs) },
  };
}

type Problems = "calls" | "models" | "failures" | "hint" | "drift" | "steered" | "retractions" | "nullRun" | "guarantees";

function problemsOf(state: RunState, evidence: Evidence): Pick<RunSummary, Problems> {
  const { answered, refused, failed, lastViolations } = state.callCounts;
  const retracted = Object.values(state.trials).filter((trial) => trial.retracted);
  const failures = failuresOf(state, evidence);
  return {
    calls: { answered, refused, failed, lastViolations: [...lastViolations] },
    models: Object.entries(state.models).map(([model, used]) => ({ model, ...used, warnings: [...used.warnings] })),
    failures,
    hint: runHint(state, failures.groups, evidence.blob),
    drift: [...state.drift],
    steered: Object.entries(state.steers).map(([trial, said]) => ({ trial, ...said })),
    retractions: retracted.map((trial) => {
      const known = evidence.timeline?.retractions.get(trial.id);
      return { trial: trial.id, reason: known?.reason ?? null, dependents: known === undefined ? null : [...known.dependents] };
    }),
    nullRun: state.phase === "finished" && !Object.values(state.trials).some(isValidSearch),
    guarantees: evidence.timeline === undefined ? null : evidence.timeline.guarantees.map((each) => ({ ...each })),
  };
}

/** Reasons may all differ: a summary stays bounded. */
const shownGroups = 20;

function failuresOf(state: RunState, { blob }: Evidence): RunSummary["failures"] {
  const groups = new Map<string, FailureGroup>();
  const failed = Object.values(state.trials).filter(isFailure);
  for (const trial of failed) {
    if (trial.status === null) continue;
    const { status, stage, reason } = trial;
    const key = JSON.stringify([status, stage, reason]);
    const group = groups.get(key) ?? { status, stage, reason, n: 0, trials: [] };
    groups.set(key, { ...group, n: group.n + 1, trials: [...group.trials, trial.id].slice(-5) });
  }
  // The order of equals is that of their first appearance.
  return {
    total: failed.length,
    groups: [...groups.values()].sort((a, b) => b.n - a.n).slice(0, shownGroups),
    causes: failureCauses(failed, blob),
  };
}

function byNumber(a: string, b: string): number {
  return Number(a.slice(1)) - Number(b.slice(1));
}
