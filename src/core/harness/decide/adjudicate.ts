import type { Command } from "../../protocol/commands.js";
import type { RunEvent } from "../../protocol/events.js";
import type { BlobReference } from "../../protocol/ids.js";
import { compareValues, gain, type MetricValues, primaryMetric, type RecordSet } from "../../protocol/measurement.js";
import { statusClasses, type TrialStatus } from "../../protocol/status.js";
import type { Verdict } from "../../protocol/verdict.js";
import { estimateOf, noiseFloorVerdict, orderVerdict, type PairedResult, pairedVerdict } from "../../statistics/verdict.js";
import { drawsOf } from "../draw.js";
import { configurationOf, type RunState, type Trial, type TrialResult, trialOf } from "../state.js";
import { calibrate } from "./calibrate.js";
import { type Handler, only, refuse } from "./decision.js";
import { closePlan, trialEnded } from "./trial-end.js";

type Adjudicate = Extract<Command, { type: "adjudicate" }>;
type Records = Adjudicate["records"];

/** The per-record results that judging this trial may need: its own, its comparator's, the leader's, the confirmations'. */
export function recordsNeeded(state: RunState, id: string): BlobReference[] {
  const trial = trialOf(state, id);
  const baseline =
    trial.kind === "baseline"
      ? Object.values(state.trials)
          .filter((each) => each.kind === "reference")
          .map((each) => each.records)
      : [];
  const confirmations = trial.results.filter((result) => result.round === trial.confirmation?.round).map((result) => result.records);
  const seen = new Map<string, BlobReference>();
  for (const reference of [...firstRecords(state, trial), ...baseline, ...confirmations])
    if (reference !== null) seen.set(reference.blob, reference);
  return [...seen.values()];
}

/** First measurements are paired by record only where seeds change nothing: else one pair says nothing of the next seed. */
function firstRecords(state: RunState, trial: Trial): (BlobReference | null)[] {
  if (state.noise?.deterministic === false) return [];
  const others = [comparatorOf(state, trial), state.leader?.trial ?? null];
  return [trial.records, ...others.map((other) => (other === null ? null : trialOf(state, other).records))];
}

/** The one place where a trial's status is decided from its measurements. */
export const adjudicate: Handler<Adjudicate> = (state, command) => {
  const trial = trialOf(state, command.trial);
  if (trial.phase === "ended" || trial.pending > 0) throw refuse("a trial whose measurements have ended", `${trial.id}`);
  if (trial.status !== null) return endFailed(state, trial, trial.status);
  if (trial.kind === "baseline") return calibrate(state, trial, command.records);
  if (trial.kind === "reference") return only(end(state, trial, "discard", "a reference row is measured, never promoted", {}));
  return trial.phase === "provisional" ? concludeConfirmation(state, trial, command.records) : judgeFirst(state, trial, command.records);
};

function endFailed(state: RunState, trial: Trial, status: TrialStatus): ReturnType<typeof only> {
  const ended = end(state, trial, status, trial.reason, { stage: trial.stage });
  if (trial.kind !== "baseline") return only(ended, ...closePlan(state, trial.id, "failed"));
  return only(ended, {
    type: "run.cancelled",
    data: {
      reason:
        `calibration failed: the baseline ended ${status}${trial.stage === null ? "" : ` in stage ${trial.stage}`}: ${trial.reason}`.slice(
          0,
          4000,
        ),
    },
  });
}

/** The first, in-loop measurement: promote, confirm or discard, by the rule in force. */
function judgeFirst(state: RunState, trial: Trial, records: Records): ReturnType<typeof only> {
  const { promotion, environment } = configurationOf(state);
  const leader = state.leader;
  if (leader === null || trial.values === null) throw refuse("a calibrated run and a measured trial", trial.id);
  // A comparison that began only where the first value is good would be a comparison of the lucky.
  if (promotion.rule === "compare") return only(...confirm(state, trial, leader.trial, 1));
  const better = compareValues(environment, trial.values, leader.values) > 0;
  const comparatorVerdict = compareWithComparator(state, trial, records);
  const discard = (reason: string, leaderVerdict: Verdict | null): ReturnType<typeof only> =>
    only(end(state, trial, "discard", reason, { comparatorVerdict, leaderVerdict }), ...closePlan(state, trial.id, "completed"));
  const primaryGain = gain(
    primaryMetric(environment),
    trial.values[primaryMetric(environment).name] ?? Number.NaN,
    leader.values[primaryMetric(environment).name] ?? Number.NaN,
  );
  if (!better) return discard(`not better than the leader ${leader.trial}`, orderVerdict(primaryGain, promotion.level));
  if (promotion.rule === "any") {
    // A tie in the first metric was broken by the next ones: the order as a whole says improved.
    return keep(state, trial, trial.values, comparatorVerdict, { ...orderVerdict(primaryGain, promotion.level), result: "improved" });
  }
  if (promotion.rule === "threshold") {
    const verdict = thresholdVerdict(state, trial, primaryGain, records);
    return verdict.result === "improved"
      ? keep(state, trial, trial.values, comparatorVerdict, verdict)
      : discard(`the gain over ${leader.trial} is within the noise`, verdict);
  }
  return only(...confirm(state, trial, leader.trial, 1));
}

function thresholdVerdict(state: RunState, trial: Trial, primaryGain: number, records: Records): Verdict {
  const { promotion } = configurationOf(state);
  const leader = trialOf(state, state.leader?.trial ?? "t0");
  const paired = state.noise?.deterministic === true ? pairOf(state, trial, leader, records) : null;
  if (paired?.candidate.records != null && paired.leader.records != null) return verdictOf(state, [paired]);
  if (state.noise === null) throw refuse("a calibrated run", "a run without a noise floor");
  return noiseFloorVerdict(primaryGain, state.noise, promotion.level, promotion.minimumGain);
}

/** Requests the pairs of a confirmation round: candidate and leader in turn, each pair on a seed nobody has seen. */
function confirm(state: RunState, trial: Trial, against: string, round: number): RunEvent[] {
  const { promotion, seed } = configurationOf(state);
  const draws = drawsOf(seed);
  const events: RunEvent[] = [{ type: "trial.provisional", data: { trial: trial.id, against, round } }];
  let number = state.counters.measurement;
  for (let pair = 0; pair < promotion.confirmations; pair++) {
    const fresh = draws.seed(`confirmation/${trial.id}/${round}`, pair);
    for (const subject of [trial.id, against]) {
      number += 1;
      const reason = subject === trial.id ? "confirmation" : "confirmation_of_leader";
      events.push({
        type: "measurement.requested",
        data: { measurement: `m${number}`, trial: trial.id, subject, reason, purpose: "confirmation", pair, round, seed: fresh },
      });
    }
  }
  return events;
}

function concludeConfirmation(state: RunState, trial: Trial, records: Records): ReturnType<typeof only> {
  const { confirmation } = trial;
  if (confirmation === null) throw refuse("a trial under confirmation", trial.id);
  const comparatorVerdict = compareWithComparator(state, trial, records);
  const discard = (reason: string, verdict: Verdict | null, before: RunEvent[]): ReturnType<typeof only> =>
    only(
      ...before,
      end(state, trial, "discard", reason, { comparatorVerdict, leaderVerdict: verdict }),
      ...closePlan(state, trial.id, "completed"),
    );
  const { against, failed, round } = confirmation;
  const isRetracted = trialOf(state, against).retracted;
  if (failed !== null && (failed.subject === trial.id || !isRetracted)) return discard(failed.reason, null, []);
  const leader = state.leader ?? { trial: against, values: {} };
  // Somebody else leads meanwhile, by promotion or since it was retracted: what counts is the leader of now.
  const again = (values: MetricValues, verdict: Verdict | null, before: RunEvent[]): ReturnType<typeof only> =>
    compareValues(configurationOf(state).environment, values, leader.values) > 0
      ? only(...before, ...confirm(state, trial, leader.trial, round + 1))
      : discard(`not better than ${leader.trial}, which became the leader meanwhile`, verdict, before);
  if (failed !== null) return again(trial.values ?? {}, null, []);
  const verdict = verdictOf(state, confirmationPairs(state, trial, records));
  const estimate = estimateOf(resultsOf(trial, "confirmation").map((result) => result.values));
  const confirmed: RunEvent = { type: "trial.confirmed", data: { trial: trial.id, against, round, verdict, estimate } };
  if (configurationOf(state).promotion.rule === "compare")
    return discard(`compared with ${against}; nothing is promoted`, verdict, [confirmed]);
  // That it does not beat a leader that was none says nothing against it.
  if (verdict.result !== "improved" && !isRetracted)
    return discard(`fresh seeds did not confirm the gain over ${against}`, verdict, [confirmed]);
  if (leader.trial === against) return keep(state, trial, estimate, comparatorVerdict, verdict, [confirmed]);
  return again(estimate, verdict, [confirmed]);
}

function keep(
  state: RunState,
  trial: Trial,
  estimate: MetricValues,
  comparatorVerdict: Verdict | null,
  leaderVerdict: Verdict,
  before: RunEvent[] = [],
): ReturnType<typeof only> {
  return only(
    ...before,
    end(state, trial, "keep", `better than ${state.leader?.trial ?? "the baseline"}`, { comparatorVerdict, leaderVerdict, best: trial.id }),
    { type: "leader.changed", data: { trial: trial.id, previous: state.leader?.trial ?? null, estimate, cause: "promotion" } },
    ...closePlan(state, trial.id, "completed"),
  );
}

interface EndFacts {
  readonly stage?: string | null;
  readonly comparatorVerdict?: Verdict | null;
  readonly leaderVerdict?: Verdict | null;
  readonly best?: string;
}

function end(state: RunState, trial: Trial, status: TrialStatus, reason: string, facts: EndFacts): RunEvent {
  const { environment } = configurationOf(state);
  const valid = statusClasses[status] === "valid" && trial.kind === "search" && trial.values !== null;
  const keptUnderAny =
    valid && state.bestUnderAny !== null && compareValues(environment, trial.values ?? {}, state.bestUnderAny.values) > 0;
  return trialEnded({
    trial: trial.id,
    status,
    stage: facts.stage ?? null,
    reason,
    bestAtEnd: facts.best ?? state.leader?.trial ?? null,
    comparatorVerdict: facts.comparatorVerdict ?? null,
    leaderVerdict: facts.leaderVerdict ?? null,
    keptUnderAny,
  });
}

function comparatorOf(state: RunState, trial: Trial): string | null {
  return trial.plan === null ? null : (state.plans[trial.plan]?.comparator ?? null);
}

/** Against the comparator that the plan froze: by records where both have them, else by the noise floor. */
function compareWithComparator(state: RunState, trial: Trial, records: Records): Verdict | null {
  const name = comparatorOf(state, trial);
  const comparator = name === null ? undefined : state.trials[name];
  if (comparator === undefined || comparator.values === null || trial.values === null || state.noise === null) return null;
  const pair = state.noise.deterministic ? pairOf(state, trial, comparator, records) : null;
  if (pair !== null && pair.candidate.records !== null && pair.leader.records !== null) return verdictOf(state, [pair]);
  const { promotion, environment } = configurationOf(state);
  const metric = primaryMetric(environment);
  const [mine, its] = [trial.values, comparator.values].map((values) => values[metric.name] ?? Number.NaN) as [number, number];
  return noiseFloorVerdict(gain(metric, mine, its), state.noise, promotion.level, promotion.minimumGain);
}

function pairOf(state: RunState, trial: Trial, other: Trial, records: Records): PairedResult {
  const { environment } = configurationOf(state);
  const metric = primaryMetric(environment).name;
  const side = (of: Trial): PairedResult["candidate"] => ({
    value: of.values?.[metric] ?? Number.NaN,
    records: loaded(records, of.records, metric),
  });
  return { seed: environment.seed, candidate: side(trial), leader: side(other) };
}

function resultsOf(trial: Trial, reason: TrialResult["reason"]): TrialResult[] {
  return trial.results.filter((result) => result.round === trial.confirmation?.round && result.reason === reason);
}

/** The pairs of a trial's last confirmation: what its verdict stands on. `records`: those that `recordsNeeded` names. */
export function confirmationPairs(state: RunState, trial: Trial, records: Records): PairedResult[] {
  const metric = primaryMetric(configurationOf(state).environment).name;
  const theirs = resultsOf(trial, "confirmation_of_leader");
  const side = (result: TrialResult): PairedResult["candidate"] => ({
    value: result.values[metric] ?? Number.NaN,
    records: loaded(records, result.records, metric),
  });
  return resultsOf(trial, "confirmation").map((result) => {
    const partner = theirs.find((each) => each.pair === result.pair);
    if (partner === undefined) throw refuse(`a leader's measurement for pair ${result.pair}`, "none");
    return { seed: result.seed, candidate: side(result), leader: side(partner) };
  });
}

/** The records behind a reference, if they are of the metric that decides: an interval of another quantity decides nothing. */
function loaded(records: Records, reference: BlobReference | null, metric: string): RecordSet | null {
  if (reference === null) return null;
  const found = records.get(reference.blob);
  if (found === undefined) throw refuse("the per-record results that `recordsNeeded` names", `none for ${reference.blob}`);
  return found.metric === metric ? found : null;
}

function verdictOf(state: RunState, pairs: readonly PairedResult[]): Verdict {
  const { environment, promotion } = configurationOf(state);
  return pairedVerdict(pairs, primaryMetric(environment).direction, promotion.level, {
    deterministic: state.noise?.deterministic ?? false,
  });
}
