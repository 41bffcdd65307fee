import { configurationOf, type RunState, type Trial } from "../../core/harness/state.js";
import type { Environment } from "../../core/protocol/environment.js";
import { attributionSection } from "./attribution-text.js";
import { diffCandidates, type FileChange } from "./candidate-diff.js";
import { continuationTexts } from "./continuation-text.js";
import { type Evidence, manifestFor, type ReadBlob } from "./evidence.js";
import { fenced, markdown, markdownCode } from "./hostile-text.js";
import { lineageOf } from "./lineage.js";
import { grid } from "./markdown-grid.js";
import { bytes, coverage, duration, plural, range, signed, significant } from "./numbers.js";
import { openingOf, resultWords } from "./opening.js";
import { predictionsOf, scorePredictions } from "./predictions.js";
import { reusedText } from "./reused-calibration-text.js";
import { ruleErrorsText } from "./rule-errors-text.js";
import { saturationText } from "./saturation-summary.js";
import { budgetText, guaranteeTexts, noiseText, ruleText, trialsText } from "./status-text.js";
import { confirmedValue, countedValue, gainOverBaseline, inLoopValue, leaderGain, type RunSummary, summarize } from "./summary.js";

/** Rows of the table of trials; `results.tsv` holds all. */
const shownTrials = 200;
/** Lines of the winner's diff. */
const shownDiffLines = 1500;

interface Subject {
  readonly state: RunState;
  readonly summary: RunSummary;
  readonly evidence: Evidence;
}

/**
 * `report.md`: the answer first, then everything that a careful reader asks next. Text of researchers and candidates is
 * escaped wherever it stands. Nothing in it was measured on held-out data: the run cannot see any.
 */
export function reportMarkdown(state: RunState, now: number, evidence: Evidence = {}): string {
  const subject: Subject = { state, summary: summarize(state, now, evidence), evidence };
  const sections = [
    opening(subject),
    attributionSection(subject.summary.attribution),
    failures(subject),
    winner(subject),
    lineage(subject),
    environmentSection(subject),
    calibration(subject),
    confirmations(subject),
    rules(subject),
    trials(subject),
    predictions(subject),
    conditions(subject),
    budget(subject),
    retractions(subject),
    verification(subject),
  ];
  return `${sections.filter((section) => section !== "").join("\n\n")}\n`;
}

function opening({ summary }: Subject): string {
  const lines = openingOf(summary).map(({ label, text }) =>
    label === "WARNING"
      ? `- **Warning: ${markdown(text)}**`
      : // What is next is made of names that can hold nothing harmful, and is to be copied.
        `- **${label}:** ${label === "Next" ? text : markdown(text).replace(/^\\/, "")}`,
  );
  const reason = summary.reason === "" ? "" : `: ${markdown(summary.reason)}`;
  const todo = summary.todo === "" ? [] : [`\n**To do:** ${markdown(summary.todo)}`];
  return [`# ${markdown(summary.run ?? "A run that has not started")}`, `**${summary.state}**${reason}`, lines.join("\n"), ...todo].join(
    "\n\n",
  );
}

function winner({ state, summary, evidence }: Subject): string {
  const best = summary.best === null ? undefined : state.trials[summary.best.trial];
  if (best === undefined || best.kind !== "search") return "";
  const whole = evidence.timeline?.trials.get(best.id);
  const hypothesis = whole?.hypothesis || best.hypothesis;
  const by = whole?.by == null ? "" : ` Proposed by ${markdownCode(whole.by, 80)}.`;
  const expected = best.expectedGain === null ? "" : ` Its plan expected a gain of ${signed(best.expectedGain)}.`;
  return [
    `## The winner: ${best.id}`,
    hypothesis === ""
      ? "Its plan states no hypothesis."
      : hypothesis
          .split("\n")
          .map((line) => `> ${markdown(line)}`)
          .join("\n"),
    `Candidate ${markdownCode(best.candidate.blob)}.${by}${expected}`,
    winnerDiff(state, best, evidence.blob),
  ].join("\n\n");
}

function winnerDiff(state: RunState, best: Trial, blob: ReadBlob | undefined): string {
  const baseline = state.trials["t0"];
  if (blob === undefined || baseline === undefined) return "Its files were not read for this report.";
  const [from, to] = [manifestFor(blob, baseline.candidate), manifestFor(blob, best.candidate)];
  if (from === null || to === null) return "Its files are no longer kept.";
  const changes = diffCandidates(from, to, blob);
  if (changes.length === 0) return "It does not differ from the baseline.";
  return [`### What it changes, against the baseline`, ...diffBlocks(changes)].join("\n\n");
}

function diffBlocks(changes: readonly FileChange[]): string[] {
  let left = shownDiffLines;
  return changes.map((change) => {
    const title = `${markdownCode(change.path, 200)}: ${change.kind}`;
    if (change.patch === null) return `${title}; ${markdown(change.note)}.`;
    const lines = change.patch.replace(/\n$/, "").split("\n");
    const shown = lines.slice(0, Math.max(0, left));
    left -= shown.length;
    const omitted = lines.length - shown.length;
    const rest = omitted === 0 ? "" : `\n\n${plural(omitted, "line")} of this diff omitted; \`trialist diff\` prints all.`;
    return shown.length === 0
      ? `${title}.${rest}`
      : `${title}\n\n${fenced(shown.map((line) => line.slice(0, 2000)).join("\n"), "diff")}${rest}`;
  });
}

function lineage({ state, summary, evidence }: Subject): string {
  if (summary.best === null || summary.best.trial === "t0") return "";
  const rows = lineageOf(state, summary.best.trial).map((trial) => [
    trial.id,
    statusOf(trial),
    significant(trial.kind === "baseline" ? countedValue(state, trial) : inLoopValue(state, trial)),
    significant(confirmedValue(state, trial)),
    verdictCell(state, trial, evidence),
    trial.kind === "baseline" ? "the baseline" : markdown(trial.hypothesis, 120),
  ]);
  return [
    `## How it came about`,
    "From the baseline to the winner, each step with its verdict against the leader of its time.",
    grid(["trial", "status", "in-loop", "confirmed", "verdict", "hypothesis"], rows),
  ].join("\n\n");
}

function environmentSection({ state }: Subject): string {
  if (state.configuration === null) return "";
  const { environment, environmentDigest } = state.configuration;
  const metrics = environment.metrics
    .map((metric) => `${markdownCode(metric.name)} (${metric.direction}; ${sourceOf(metric)})`)
    .join(", then ");
  const gates = environment.gates.map((gate) =>
    "metric" in gate ? gateText(gate) : `${markdownCode(gate.artifact)} at most ${bytes(gate.atMostBytes)}`,
  );
  return [
    "## Environment",
    `${markdownCode(environment.name)}, frozen as ${markdownCode(environmentDigest)}.`,
    [
      `- Metric: ${metrics}`,
      `- Gates: ${gates.length === 0 ? "none" : gates.join("; ")}`,
      `- Editable: ${environment.surface.editable.map((glob) => markdownCode(glob, 200)).join(", ")}, at most ${bytes(environment.surface.maxBytes)}`,
      `- Seed of splits, training and decoding: ${environment.seed}`,
    ].join("\n"),
    grid(["stage", "trust", "purpose", "repeats", "wall limit", "CPU limit", "memory limit", "alone"], environment.stages.map(stageRow)),
  ].join("\n\n");
}

function sourceOf(metric: Environment["metrics"][number]): string {
  if (metric.from.kind === "measurement") return "measured by the evaluator";
  if (metric.from.kind === "json")
    return `**self-reported**: \`${metric.from.key}\` in ${metric.from.file}, which the candidate itself wrote`;
  if (metric.from.kind === "wall") return `seconds of stage ${metric.from.stage}, clocked outside the process`;
  return `**self-reported**: printed by stage ${metric.from.stage}`;
}

function gateText(gate: { metric: string; atLeast: number | null; atMost: number | null; validity: boolean }): string {
  const bounds = [gate.atLeast === null ? "" : `at least ${gate.atLeast}`, gate.atMost === null ? "" : `at most ${gate.atMost}`]
    .filter((part) => part !== "")
    .join(" and ");
  return `${markdownCode(gate.metric, 60)} ${bounds}${gate.validity ? " (a rule of validity)" : ""}`;
}

function stageRow(stage: Environment["stages"][number]): string[] {
  const { limits } = stage;
  return [
    stage.name,
    stage.trust,
    stage.purpose ?? "",
    String(stage.repeats),
    duration(limits.wallMs),
    duration(limits.cpuMs),
    bytes(limits.memoryBytes),
    stage.exclusive ? "yes" : "",
  ].map((cell) => markdown(cell));
}

function calibration({ state, summary }: Subject): string {
  const { noise, baseline, rule } = summary;
  if (noise === null || baseline === null || rule === null) return "";
  const stages = Object.entries(state.stageMs)
    .map(([stage, ms]) => `${markdown(stage)} ${duration(ms)}`)
    .join(", ");
  const lines = [
    `- Baseline: ${significant(baseline.mean)}, mean of ${plural(baseline.n, "repetition")}${markdown(reusedText(summary.calibrationReused))}`,
    `- Noise: ${noiseText(noise)}`,
    `- Rule: ${ruleText(rule, noise.smallestGain)}`,
    `- One measurement: ${duration(state.pipelineWallMs)}, ${duration(state.pipelineCpuMs)} CPU (${stages})`,
  ];
  const references = summary.references.map((row) => [
    row.trial,
    markdown(row.name, 80),
    significant(row.value),
    signed(row.gainOverBaseline),
    markdown(row.value === null ? `${row.status ?? "being measured"}: ${row.reason}` : "", 120),
  ]);
  return [
    "## Calibration",
    lines.join("\n"),
    ...(references.length === 0 ? [] : [grid(["reference", "name", "value", "over the baseline", ""], references)]),
  ].join("\n\n");
}

function confirmations({ state, summary, evidence }: Subject): string {
  const rows = Object.values(state.trials)
    .filter((trial) => trial.kind === "search" && trial.confirmation !== null)
    .map((trial) => {
      const [first, estimate] = [inLoopValue(state, trial), confirmedValue(state, trial)];
      const gain = leaderGain(state, trial, evidence);
      return [
        trial.id,
        trial.confirmation?.against ?? "",
        significant(first),
        significant(estimate),
        gain === null ? markdown(trial.confirmation?.failed ?? "", 120) : `${signed(gain.value)}`,
        gain === null ? "" : range(gain.lower, gain.upper, signed),
        gain === null ? "" : resultWords[gain.result],
        statusOf(trial),
      ];
    });
  if (rows.length === 0) return "";
  const level = coverage(summary.rule?.level ?? 0.05);
  return [
    "## Confirmations",
    `The first value made it a candidate and enters no estimate; the estimate is the mean over fresh seeds. Intervals are of the gain, ${level}.`,
    `How often this rule errs: ${markdown(ruleErrorsText(summary.gate))}.`,
    grid(["trial", "against", "first", "estimate", "gain", "interval", "result", "status"], rows),
  ].join("\n\n");
}

function rules({ state, summary }: Subject): string {
  const { rule, keeps, bestUnderAny, best } = summary;
  if (rule === null || rule.name === "any" || rule.name === "compare" || best === null) return "";
  const any =
    bestUnderAny === null ? ["", "", ""] : [bestUnderAny.trial, significant(bestUnderAny.value), signed(bestUnderAny.gainOverBaseline)];
  const inForce = [best.trial, significant(best.value), best.trial === "t0" ? "" : signed(best.overBaseline?.absolute)];
  const lost = Object.values(state.trials)
    .filter((trial) => trial.keptUnderAny && trial.status !== "keep")
    .map((trial) => trial.id);
  const only =
    lost.length === 0
      ? ""
      : `Kept under \`any\` alone: ${lost.slice(0, 40).join(", ")}${lost.length > 40 ? `, and ${lost.length - 40} more` : ""}.`;
  return [
    "## What another rule would have kept",
    grid(
      ["rule", "keeps", "best", "value", "over the baseline"],
      [
        [`${rule.name} (in force)`, String(keeps.underRule), ...inForce],
        ["any", String(keeps.underAny), ...any],
      ],
    ),
    "The value under `any` is a best raw measurement: optimistic, because it was selected for being high or low.",
    only,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function trials({ state, summary, evidence }: Subject): string {
  const all = Object.values(state.trials).filter((trial) => trial.kind === "search");
  if (all.length === 0) return "";
  const shown = all.slice(0, shownTrials);
  const rows = shown.map((trial) => [
    trial.id,
    trial.base ?? "",
    statusOf(trial),
    `${significant(inLoopValue(state, trial))}${trial.selfReported ? " (self-reported)" : ""}`,
    significant(confirmedValue(state, trial)),
    signed(gainOverBaseline(state, countedValue(state, trial))),
    verdictCell(state, trial, evidence),
    duration(trial.wallMs),
    markdown(trial.hypothesis, 120),
    markdown(trial.reason, 120),
  ]);
  const omitted = all.length - shown.length;
  return [
    "## Trials",
    `${plural(summary.progress.done, "trial")} ended: ${trialsText(summary)}.`,
    grid(["trial", "base", "status", "in-loop", "confirmed", "over baseline", "verdict", "time", "hypothesis", "reason"], rows),
    omitted === 0 ? "" : `${plural(omitted, "trial")} omitted here: \`results.tsv\` holds all.`,
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function failures({ summary }: Subject): string {
  const { causes, total } = summary.failures;
  const { answered, refused, failed, lastViolations } = summary.calls;
  const rows = causes.map((each) => [
    String(each.n),
    each.status,
    markdown(each.stage ?? ""),
    markdown(each.cause, 200),
    `${each.example.trial}: ${markdown(each.example.line, 200)}`,
    markdown(each.hint),
  ]);
  const left = total - causes.reduce((sum, each) => sum + each.n, 0);
  const show =
    causes.length === 0 ? "" : `\`trialist show ${summary.run} ${causes[0]?.example.trial}\` has the whole output of an example.`;
  const last =
    refused + failed === 0
      ? []
      : lastViolations
          .slice(0, 5)
          .map(
            (each) =>
              `- ${markdownCode(each.code, 80)}${each.path === null ? "" : ` at ${markdownCode(each.path, 200)}`}: ${markdown(each.message, 300)}`,
          );
  return [
    "## What failed, and why",
    total === 0 ? "No trial failed." : grid(["n", "status", "stage", "why", "example", "what to do"], rows),
    left === 0 ? "" : `${left} more, in smaller groups.`,
    summary.hint === null ? "" : `Hint: ${markdown(summary.hint)}.`,
    show,
    `Calls: ${answered} answered, ${refused} refused, ${failed} failed.${last.length === 0 ? "" : " The last problems:"}`,
    last.join("\n"),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

function predictions({ state }: Subject): string {
  const score = scorePredictions(predictionsOf(state));
  if (score.n === 0) return "";
  const agreement = score.signAgreement === null ? "" : `${significant(score.signAgreement * 100, 3)} %`;
  return [
    "## Predictions",
    "Gains that plans expected, against the gains measured over the comparator that each plan froze.",
    grid(
      ["n", "sign foreseen", "mean absolute error", "bias (expected − measured)", "rank correlation"],
      [[String(score.n), agreement, significant(score.meanAbsoluteError, 3), signed(score.bias), significant(score.rankCorrelation, 3)]],
    ),
  ].join("\n\n");
}

function conditions({ state, summary }: Subject): string {
  if (state.configuration === null) return "";
  const { host, seed, parallel, researchers, alternates } = configurationOf(state);
  const held = guaranteeTexts(summary);
  const versions = Object.entries(host.versions)
    .map(([name, version]) => `, ${name} ${version}`)
    .join("");
  const gpus = (host.gpus ?? []).map((model) => `, GPU ${model}`).join("");
  const lines = [
    `- Sandbox: ${summary.sandbox === "none" ? "**NONE**" : summary.sandbox}`,
    ...(held.length === 0 ? ["- Guarantees: not read for this report"] : held.map((text) => `- Held: ${markdown(text)}`)),
    `- Host: ${markdown(`${host.platform}, ${plural(host.cpus, "CPU")}, ${host.cpuModel}, ${bytes(host.memoryBytes)}${gpus}${versions}`)}`,
    `- Organization: ${markdown(state.configuration.organization.name)}, ${plural(parallel, "trial")} at once; researchers: ${markdown(
      Object.entries(researchers)
        .map(([role, name]) => `${role} = ${[name, ...(role === "*" ? alternates : [])].join(" and in turn ")}`)
        .join(", "),
    )}`,
    `- Run seed: ${seed}; it varies researchers and draws, nothing else`,
    `- Baseline measured again: ${plural(state.remeasurements.length, "time")}${driftNumbers(state)}`,
    ...summary.drift.map((notice) => `- **Drift:** ${markdown(notice.message)}`),
  ];
  return ["## Conditions", lines.join("\n")].join("\n\n");
}

function driftNumbers(state: RunState): string {
  const values = state.remeasurements.slice(-20).map((each) => `${significant(each.value)} after ${plural(each.afterTrials, "trial")}`);
  return values.length === 0 ? "" : ` (${values.join("; ")})`;
}

function budget({ summary }: Subject): string {
  return [
    "## Budget",
    ...continuationTexts(summary).map(([label, text]) => `${label} ${markdown(text)}.`),
    `${markdown(budgetText(summary))}. Confirmations, references and re-measurements use no trials, but their CPU time counts.`,
    ...(saturationText(summary) === "" ? [] : [`Chance: ${markdown(saturationText(summary))}.`]),
  ].join("\n\n");
}

function retractions({ summary, evidence }: Subject): string {
  const acts = (evidence.timeline?.operator ?? []).map(
    (each) => `- ${markdown(each.action)}${each.subject === null ? "" : ` ${markdown(each.subject)}`}: ${markdown(each.reason, 400)}`,
  );
  const gone = summary.retractions.map(
    (each) =>
      `- ${each.trial} retracted${each.reason === null ? "" : `: ${markdown(each.reason, 400)}`}${each.dependents === null || each.dependents.length === 0 ? "" : `; depend on it: ${each.dependents.join(", ")}`}`,
  );
  if (acts.length + gone.length === 0) return "";
  return ["## Retractions and what the operator did", [...gone, ...acts].join("\n")].join("\n\n");
}

function verification({ summary }: Subject): string {
  if (summary.run === null) return "";
  const best = summary.best?.trial ?? "t0";
  const commands = [
    `trialist verify ${summary.run}    # recomputes the ledger's chain, blobs and state`,
    `trialist show ${summary.run} ${best}    # every measurement behind the result`,
    `trialist diff ${summary.run} ${best}    # what it changes`,
  ];
  return [
    "## How to check this",
    fenced(commands.join("\n"), "sh"),
    "Nothing in this report was measured on held-out data; the run cannot read it.",
  ].join("\n\n");
}

function statusOf(trial: Trial): string {
  const status = trial.phase === "ended" ? (trial.status ?? "") : trial.phase;
  return trial.retracted ? `${status}, **retracted**` : status;
}

function verdictCell(state: RunState, trial: Trial, evidence: Evidence): string {
  const gain = trial.kind === "search" ? leaderGain(state, trial, evidence) : null;
  if (gain === null) return "";
  const bounds = gain.lower === null && gain.upper === null ? "" : ` (${range(gain.lower, gain.upper, signed)})`;
  return `${resultWords[gain.result]}${gain.over === null ? "" : ` over ${gain.over}`}: ${signed(gain.value)}${bounds}`;
}
