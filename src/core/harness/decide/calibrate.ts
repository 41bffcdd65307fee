import type { Command, Decision } from "../../protocol/commands.js";
import type { Promotion } from "../../protocol/environment.js";
import type { RunEvent } from "../../protocol/events.js";
import { primaryMetric, type RecordSet } from "../../protocol/measurement.js";
import type { Noise } from "../../protocol/verdict.js";
import { estimateOf, noiseOf, smallestConfirmableGain } from "../../statistics/verdict.js";
import { configurationOf, type RunState, type Trial } from "../state.js";
import { only } from "./decision.js";
import { trialEnded } from "./trial-end.js";

type Records = Extract<Command, { type: "adjudicate" }>["records"];

/**
 * Ends the baseline's repetitions: the starting point, its noise, what a pipeline takes, and the smallest gain that the
 * rule in force can see. A rule that could see nothing at all refuses to start here, before anything is spent.
 */
export function calibrate(state: RunState, baseline: Trial, records: Records): Decision {
  const { environment, promotion } = configurationOf(state);
  const metric = primaryMetric(environment).name;
  const repetitions = baseline.results.filter((result) => result.reason === "calibration");
  const noise = {
    n: repetitions.length,
    ...noiseOf(repetitions.map((result) => ({ seed: result.seed, value: result.values[metric] ?? Number.NaN }))),
  };
  const estimate = estimateOf(repetitions.map((result) => result.values));
  const hasRecords = baseline.records !== null;
  const calibrated: Noise = {
    ...noise,
    records: hasRecords,
    smallestGain: smallestConfirmableGain({ noise, promotion, reference: referencePair(state, baseline, records) }),
  };
  const ended = endOfBaseline();
  const blind = blindRule(calibrated, promotion.rule, promotion.minimumGain);
  if (blind !== null) return only(ended, { type: "run.cancelled", data: { reason: blind } });
  return only(
    ended,
    { type: "leader.changed", data: { trial: "t0", previous: null, estimate, cause: "calibration" } },
    { type: "run.calibrated", data: { noise: calibrated, ...costs(baseline) } },
  );
}

function endOfBaseline(): RunEvent {
  return trialEnded({ trial: "t0", status: "keep", reason: "the starting point, as measured here", bestAtEnd: "t0" });
}

function blindRule(noise: Noise, rule: Promotion["rule"], minimumGain: number | null): string | null {
  const way =
    "Set promotion: { rule: threshold, minimum_gain: … } with the smallest gain that matters to you, or let the evaluator write per-record results.";
  if (rule === "confirmed" && noise.deterministic && !noise.records) {
    return `the baseline gives the same value on every seed and its measurement has no per-record results, so the rule confirmed has nothing to confirm with. ${way}`;
  }
  if (rule === "threshold" && minimumGain === null && !noise.records && (noise.sd === null || noise.deterministic)) {
    return `the rule threshold has no noise floor here: the baseline's ${noise.n} repetitions do not differ and there are no per-record results. ${way}`;
  }
  return null;
}

function costs(baseline: Trial): { stageMs: Record<string, number>; pipelineWallMs: number; pipelineCpuMs: number } {
  const n = Math.max(1, baseline.results.length);
  const stageMs: Record<string, number> = {};
  for (const result of baseline.results) {
    for (const [stage, ms] of Object.entries(result.wallMs)) stageMs[stage] = (stageMs[stage] ?? 0) + ms / n;
  }
  return { stageMs, pipelineWallMs: baseline.wallMs / n, pipelineCpuMs: baseline.cpuMs / n };
}

/** A reference row's records beside the baseline's: the only look at how two recipes differ by record before a search. */
function referencePair(
  state: RunState,
  baseline: Trial,
  records: Records,
): { readonly baseline: RecordSet; readonly reference: RecordSet } | null {
  const reference = Object.values(state.trials).find((trial) => trial.kind === "reference" && trial.records !== null);
  if (reference?.records == null || baseline.records === null) return null;
  const [left, right] = [records.get(baseline.records.blob), records.get(reference.records.blob)];
  return left === undefined || right === undefined ? null : { baseline: left, reference: right };
}
