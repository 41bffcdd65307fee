import type { RunState, Trial } from "../../core/harness/state.js";
import { confirmedValue, countedValue, gainOverBaseline, inLoopValue, isValidSearch, metricOf } from "../../core/harness/trial-values.js";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import { gain } from "../../core/protocol/measurement.js";
import { type Evidence, manifestFor } from "./evidence.js";
import { jsonDocument, markdown, markdownCode, tsvText } from "./hostile-text.js";
import { preorder } from "./lineage.js";
import { plural, signed, significant } from "./numbers.js";
import { leaderGain, type RunSummary, summarize } from "./summary.js";

type Cell = string | number | boolean | null | undefined;

/** Full precision; unknown is empty; text is escaped so that a row stays a row. */
function cell(value: Cell): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? tsvText(value) : String(value);
}

function tsv(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [header.map(tsvText), ...rows.map((row) => row.map(cell))].map((row) => `${row.join("\t")}\n`).join("");
}

/**
 * `results.tsv`: one row per searched trial, in ledger order, open ones included with an empty status. The column of
 * the metric has its name. `delta_vs_best`: gain over the leader that it was judged against, positive is better.
 * `timestamp`, `specialist` and `domain` (the role) need the timeline and are empty without.
 */
export function resultsTsv(state: RunState, evidence: Evidence = {}): string {
  const metric = metricName(state);
  const header = [
    "exp_id",
    "timestamp",
    "specialist",
    "parent_exp",
    "other_parents",
    "baseline_exp",
    "domain",
    "hypothesis",
    "expected_delta",
    "status",
    metric,
    `${metric}_confirmed`,
    "delta_vs_best",
    "delta_lower",
    "delta_upper",
    "verdict",
    "kept_under_any",
    "stage",
    "reason",
    "wall_s",
    "cpu_s",
    "candidate",
    "self_reported",
    "sandbox",
    "retracted",
    "notes",
  ];
  const rows = Object.values(state.trials)
    .filter((trial) => trial.kind === "search")
    .map((trial) => resultRow(state, trial, evidence));
  return tsv(header, rows);
}

function resultRow(state: RunState, trial: Trial, evidence: Evidence): Cell[] {
  const times = evidence.timeline?.trials.get(trial.id);
  const plan = trial.plan === null ? undefined : state.plans[trial.plan];
  const verdict = leaderGain(state, trial, evidence);
  const role = times?.by ?? null;
  const others = trial.parents.filter((parent) => parent !== trial.base);
  return [
    trial.id,
    times?.endedAt == null ? null : new Date(times.endedAt).toISOString(),
    role,
    trial.base,
    others.join(","),
    plan?.comparator,
    role,
    times?.hypothesis || trial.hypothesis,
    trial.expectedGain,
    trial.phase === "ended" ? trial.status : null,
    inLoopValue(state, trial),
    confirmedValue(state, trial),
    verdict?.value,
    verdict?.lower,
    verdict?.upper,
    verdict?.result,
    trial.keptUnderAny,
    trial.stage,
    trial.reason,
    trial.wallMs / 1000,
    trial.cpuMs / 1000,
    trial.candidate.blob,
    trial.selfReported,
    state.configuration?.sandbox,
    trial.retracted,
    notesOf(state, trial, evidence),
  ];
}

function notesOf(state: RunState, trial: Trial, evidence: Evidence): string {
  const notes = [
    trial.phase === "ended" ? "" : `${trial.phase}, not ended`,
    state.leader?.trial === trial.id ? "best" : "",
    trial.retracted ? `retracted: ${evidence.timeline?.retractions.get(trial.id)?.reason ?? "reason in the ledger"}` : "",
  ];
  const move = Object.entries(trial.move).map(([key, value]) => `${key}=${value ?? ""}`);
  return [...notes.filter((note) => note !== ""), ...move].join("; ");
}

/** `tree.tsv`: the baseline, the references and every searched trial, in preorder, with depth and path of ids. */
export function treeTsv(state: RunState, evidence: Evidence = {}): string {
  const header = [
    "exp_id",
    "parent_exp",
    "depth",
    "path",
    "specialist",
    "status",
    metricName(state),
    "delta_vs_best",
    "retracted",
    "hypothesis",
  ];
  const rows = preorder(state).map(({ trial, depth, path }): Cell[] => {
    const times = evidence.timeline?.trials.get(trial.id);
    const words = times?.hypothesis || trial.hypothesis || trial.name;
    return [
      trial.id,
      trial.base,
      depth,
      path,
      times?.by ?? trial.kind,
      trial.phase === "ended" ? trial.status : null,
      inLoopValue(state, trial),
      leaderGain(state, trial, evidence)?.value,
      trial.retracted,
      words,
    ];
  });
  return tsv(header, rows);
}

export interface BestExport {
  readonly schema: "trialist/best@1";
  readonly run: string | null;
  readonly environment: RunSummary["environment"];
  readonly metric: RunSummary["metric"];
  readonly baseline: RunSummary["baseline"];
  readonly rule: RunSummary["rule"];
  readonly sandbox: RunSummary["sandbox"];
  /** As in `trialist/status@1`. */
  readonly best: RunSummary["best"];
  readonly values: Readonly<Record<string, number>> | null;
  readonly hypothesis: string | null;
  readonly specialist: string | null;
  readonly timestamp: string | null;
  readonly candidate: { readonly digest: string; readonly manifest: CandidateManifest | null } | null;
}

/** The content of `best.json`. `candidate.manifest` is null where the blobs were not read or are no longer kept. */
export function bestExport(state: RunState, now: number, evidence: Evidence = {}): BestExport {
  const { run, environment, metric, baseline, rule, sandbox, best } = summarize(state, now, evidence);
  const trial = best === null ? undefined : state.trials[best.trial];
  const times = trial === undefined ? undefined : evidence.timeline?.trials.get(trial.id);
  return {
    schema: "trialist/best@1",
    run,
    environment,
    metric,
    baseline,
    rule,
    sandbox,
    best,
    values: best === null ? null : { ...state.leader?.values },
    hypothesis: trial === undefined ? null : times?.hypothesis || trial.hypothesis,
    specialist: times?.by ?? null,
    timestamp: times?.endedAt == null ? null : new Date(times.endedAt).toISOString(),
    candidate:
      trial === undefined
        ? null
        : { digest: trial.candidate.blob, manifest: evidence.blob === undefined ? null : manifestFor(evidence.blob, trial.candidate) },
  };
}

export function bestJson(state: RunState, now: number, evidence: Evidence = {}): string {
  return jsonDocument(bestExport(state, now, evidence));
}

/** Rows of the leaderboard. */
const leaders = 20;

/**
 * `LEADERBOARD.md`: the best, then the top 20: kept trials first, by the value that counts (confirmed where there is
 * one), then other valid trials by their raw value. Retracted trials are left out.
 */
export function leaderboardMarkdown(state: RunState, now: number, evidence: Evidence = {}): string {
  const summary = summarize(state, now, evidence);
  const metric = summary.metric;
  const title = `# Leaderboard: ${markdown(summary.run ?? "not started")}`;
  if (metric === null || summary.best === null) return `${title}\n\nNothing is measured yet.\n`;
  const { best } = summary;
  const sandbox = summary.sandbox === "none" ? "\n**Run without a sandbox: no score below is proof.**\n" : "";
  const name = `${markdownCode(metric.name)} (${metric.direction}${metric.selfReported ? ", **self-reported**" : ""})`;
  const over = best.overBaseline === null ? "" : `, ${signed(best.overBaseline.absolute)} over the baseline`;
  const bestLine = `Best: **${best.trial}**, ${significant(best.value)} ${name}${over}. ${best.trial === "t0" ? "No trial was promoted over the baseline." : best.confirmed ? "Confirmed on fresh seeds." : "Not confirmed."}`;
  const ranked = rankedTrials(state);
  const rows = ranked.slice(0, leaders).map((trial, index) => {
    const value = countedValue(state, trial);
    return `| ${index + 1} | ${trial.id} | ${trial.status ?? ""} | ${significant(value)} | ${trial.estimate === null ? "in-loop" : trial.status === "keep" ? "confirmed" : "measured again"} | ${signed(gainOverBaseline(state, value))} | ${markdown(trial.hypothesis, 100)} |`;
  });
  const table =
    rows.length === 0
      ? "No trial has a valid measurement."
      : ["| # | trial | status | value | stands on | over the baseline | hypothesis |", "|---|---|---|---|---|---|---|", ...rows].join(
          "\n",
        );
  const more = ranked.length > leaders ? `\n${plural(ranked.length - leaders, "valid trial")} below these.\n` : "";
  return `${title}\n${sandbox}\n${bestLine}\n\n${table}\n${more}`;
}

function rankedTrials(state: RunState): Trial[] {
  const metric = metricOf(state);
  if (metric === null) return [];
  const standing = (trial: Trial): number => countedValue(state, trial) ?? Number.NaN;
  return Object.values(state.trials)
    .filter((trial) => isValidSearch(trial) && Number.isFinite(standing(trial)))
    .sort((a, b) => Number(b.status === "keep") - Number(a.status === "keep") || gain(metric, standing(b), standing(a)));
}

function metricName(state: RunState): string {
  return metricOf(state)?.name ?? "value";
}
