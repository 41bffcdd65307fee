import { configurationOf, type RunState, type Trial, trialOf } from "../core/harness/state.js";
import { countedValue, gainOverBaseline } from "../core/harness/trial-values.js";
import { type CandidateManifest, readManifest } from "../core/protocol/candidate.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { Packet, PacketMeasurement } from "../core/protocol/packet.js";
import { leaderGain, retractedBelow } from "../research/report/summary.js";
import { readTimeline } from "../research/report/timeline.js";
import { countLooks } from "./heldout-looks.js";
import type { InspectedRun } from "./inspect.js";

/** Everything that a packet says of a trial, before its files are gathered. */
export type Claims = Omit<Packet, "schema" | "data" | "leftOut" | "files">;

/** @throws RefusedError for a trial that measured nothing, or that is the baseline */
export function claimsOf(inspected: InspectedRun, trial: Trial, redact: (text: string) => string): Claims {
  const { state, ledger, name } = inspected;
  const { status } = trial;
  if (trial.kind === "baseline" || trial.values === null || status === null)
    throw new RefusedError({
      expected: "a trial that was measured, and that is not the baseline: that is in every packet",
      found: `${trial.id}, ${trial.kind === "baseline" ? "the baseline" : (status ?? trial.phase)}`,
      todo: `\`trialist show ${name}\` lists the trials.`,
    });
  const configuration = configurationOf(state);
  const timeline = readTimeline(ledger.read());
  const evidence = { blob: (digest: string) => ledger.blob(digest), timeline };
  const comparator = trialOf(state, leaderGain(state, trial, evidence)?.over ?? "t0");
  const manifest = (of: Trial): CandidateManifest => readManifest(ledger.blob(of.candidate.blob));
  const baseline = trialOf(state, "t0");
  const { versions, ...machine } = configuration.host;
  return {
    run: name,
    trial: {
      id: trial.id,
      status,
      hypothesis: redact(timeline.trials.get(trial.id)?.hypothesis || trial.hypothesis),
      selfReported: trial.selfReported,
      retracted: trial.retracted,
      restsOnRetracted: retractedBelow(state, trial),
    },
    environment: { name: configuration.environment.name, digest: configuration.environmentDigest },
    promotion: configuration.promotion,
    sandbox: configuration.sandbox,
    guarantees: timeline.guarantees.map(({ held }) => held),
    noise: state.noise,
    comparator: comparator.id,
    verdict: trial.leaderVerdict,
    estimate: trial.estimate ?? trial.values,
    gainOverBaseline: gainOverBaseline(state, countedValue(state, trial)),
    seeds: { environment: configuration.environment.seed, confirmations: confirmed(trial, "confirmation").map(({ seed }) => seed) },
    measurements: measurementsOf(state, trial, comparator, baseline),
    heldoutLooks: countLooks(inspected.folder),
    spend: { ...state.budget.spent, activeMs: state.activeMs, searched: state.searchTrialsEnded },
    host: { ...machine, versions },
    ledger: { chain: ledger.chain, events: ledger.head },
    candidates: { candidate: manifest(trial), comparator: manifest(comparator), baseline: manifest(baseline) },
  };
}

/** The results of the last confirmation, by pair. */
function confirmed(trial: Trial, reason: "confirmation" | "confirmation_of_leader"): Trial["results"] {
  return trial.results
    .filter((result) => result.reason === reason && result.round === trial.confirmation?.round)
    .sort((a, b) => a.pair - b.pair);
}

function measurementsOf(state: RunState, trial: Trial, comparator: Trial, baseline: Trial): PacketMeasurement[] {
  const { seed } = configurationOf(state).environment;
  const first = (subject: PacketMeasurement["subject"], of: Trial): PacketMeasurement[] =>
    of.values === null || of.kind === "baseline"
      ? []
      : [{ subject, reason: "first", pair: 0, seed, values: of.values, records: of.records?.blob ?? null }];
  const results = (subject: PacketMeasurement["subject"], reason: PacketMeasurement["reason"], of: Trial["results"]): PacketMeasurement[] =>
    of.map((result) => ({
      subject,
      reason,
      pair: result.pair,
      seed: result.seed,
      values: result.values,
      records: result.records?.blob ?? null,
    }));
  return [
    ...first("candidate", trial),
    ...first("comparator", comparator),
    ...results(
      "baseline",
      "calibration",
      baseline.results.filter((result) => result.reason === "calibration"),
    ),
    ...results("candidate", "confirmation", confirmed(trial, "confirmation")),
    ...results("comparator", "confirmation", confirmed(trial, "confirmation_of_leader")),
  ];
}
