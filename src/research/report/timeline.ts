import type { StoredEvent } from "../../core/ports/ledger.js";
import { parseEvent, type StoredRunEvent } from "../../core/protocol/events.js";
import type { Guarantees } from "../../core/protocol/outcome.js";
import type { Verdict } from "../../core/protocol/verdict.js";

/**
 * What reports want to know and the fold does not keep: times, whole hypotheses, why a trial was retracted, which
 * guarantees held. Read once from the ledger; every report also works without.
 */
export interface Timeline {
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly trials: ReadonlyMap<string, TrialTimes>;
  readonly retractions: ReadonlyMap<string, { readonly at: number; readonly reason: string; readonly dependents: readonly string[] }>;
  readonly operator: readonly { readonly at: number; readonly action: string; readonly reason: string; readonly subject: string | null }[];
  /** Distinct sets of guarantees, with how many measurements were made under each. */
  readonly guarantees: readonly { readonly held: Guarantees; readonly measurements: number }[];
}

export interface TrialTimes {
  readonly admittedAt: number;
  endedAt: number | null;
  readonly hypothesis: string;
  /** Role that proposed it, or who submitted it. */
  readonly by: string | null;
  comparatorVerdict: Verdict | null;
  /** The leader that it was judged against, once it has ended. */
  against: string | null;
}

interface Draft {
  startedAt: number | null;
  endedAt: number | null;
  trials: Map<string, TrialTimes>;
  retractions: Map<string, { at: number; reason: string; dependents: readonly string[] }>;
  operator: { at: number; action: string; reason: string; subject: string | null }[];
  guarantees: Map<string, { held: Guarantees; measurements: number }>;
  plans: Map<string, { hypothesis: string; by: string | null }>;
  callers: Map<string, string>;
}

/** @throws UnknownRecordError for an event that this build does not know */
export function readTimeline(events: Iterable<StoredEvent>): Timeline {
  const draft: Draft = {
    startedAt: null,
    endedAt: null,
    trials: new Map(),
    retractions: new Map(),
    operator: [],
    guarantees: new Map(),
    plans: new Map(),
    callers: new Map(),
  };
  for (const event of events) take(draft, parseEvent(event));
  const { startedAt, endedAt, trials, retractions, operator } = draft;
  return {
    startedAt,
    endedAt,
    trials,
    retractions,
    operator,
    guarantees: [...draft.guarantees.values()].sort((a, b) => b.measurements - a.measurements),
  };
}

function take(draft: Draft, event: StoredRunEvent): void {
  switch (event.type) {
    case "run.started":
      draft.startedAt = event.at;
      return;
    case "run.finished":
    case "run.cancelled":
      draft.endedAt = event.at;
      return;
    case "run.extended":
    case "run.forked":
      draft.endedAt = null;
      return;
    case "call.requested":
      draft.callers.set(event.data.call, event.data.role);
      return;
    case "session.opened":
      draft.callers.set(event.data.session, event.data.role);
      return;
    case "plan.proposed":
      draft.plans.set(event.data.plan, { hypothesis: event.data.hypothesis, by: proposerOf(draft, event.data.by) });
      return;
    case "attempt.ended":
      if (event.data.result.kind === "measured") countGuarantees(draft, event.data.result.measured.guarantees);
      return;
    case "operator.acted":
      draft.operator.push({ at: event.at, ...event.data });
      return;
    default:
      takeTrial(draft, event);
  }
}

function takeTrial(draft: Draft, event: StoredRunEvent): void {
  if (event.type === "trial.admitted") {
    const plan = event.data.plan === null ? undefined : draft.plans.get(event.data.plan);
    draft.trials.set(event.data.trial, {
      admittedAt: event.at,
      endedAt: null,
      hypothesis: plan?.hypothesis ?? "",
      by: plan?.by ?? null,
      comparatorVerdict: null,
      against: null,
    });
  } else if (event.type === "trial.retracted") {
    draft.retractions.set(event.data.trial, { at: event.at, reason: event.data.reason, dependents: event.data.dependents });
  } else if (event.type === "trial.ended") {
    const trial = draft.trials.get(event.data.trial);
    if (trial === undefined) return;
    trial.endedAt = event.at;
    trial.comparatorVerdict = event.data.comparatorVerdict;
    if (event.data.bestAtEnd !== event.data.trial) trial.against = event.data.bestAtEnd;
  } else if (event.type === "leader.changed" && event.data.cause === "promotion") {
    const trial = draft.trials.get(event.data.trial);
    if (trial !== undefined) trial.against = event.data.previous;
  }
}

function proposerOf(draft: Draft, by: { call: string } | { session: string } | { submitter: string }): string | null {
  if ("submitter" in by) return by.submitter;
  return draft.callers.get("call" in by ? by.call : by.session) ?? null;
}

function countGuarantees(draft: Draft, held: Guarantees): void {
  const key = JSON.stringify(Object.entries(held).sort());
  const known = draft.guarantees.get(key);
  if (known === undefined) draft.guarantees.set(key, { held, measurements: 1 });
  else known.measurements += 1;
}
