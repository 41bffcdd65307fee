import { isOver } from "../../core/harness/due.js";
import { attributionLine } from "./attribution-text.js";
import { lookWarnings } from "./continuation-text.js";
import { oneLine } from "./hostile-text.js";
import { nextStep } from "./next-step.js";
import { count, coverage, duration, money, percent, plural, range, signed, significant } from "./numbers.js";
import { ruleErrorsText } from "./rule-errors-text.js";
import type { GainSummary, RunSummary } from "./summary-schema.js";

/** One line of the answer that a person wants in ten seconds. */
export interface OpeningLine {
  readonly label: "Won" | "Gain" | "Sure" | "Errors" | "Changes" | "Cost" | "Failed" | "Next" | "WARNING";
  readonly text: string;
  readonly tone: "good" | "bad" | "plain";
}

/** What won, by how much, how sure, owing to what, what it cost, what failed most, what to do next; warnings that change how to read it come first. One printable line each. */
export function openingOf(summary: RunSummary): OpeningLine[] {
  return [
    ...warningsOf(summary),
    wonLine(summary),
    ...gainLines(summary),
    ...errorLines(summary),
    ...changesLines(summary),
    costLine(summary),
    failedLine(summary),
    ...nextLines(summary),
  ];
}

function changesLines({ attribution, best }: RunSummary): OpeningLine[] {
  if (attribution === null) return [];
  const of = attribution.winner === best?.trial ? "" : `${attribution.winner}: `;
  return [{ label: "Changes", text: `${of}${attributionLine(attribution)}`, tone: "plain" }];
}

function nextLines(summary: RunSummary): OpeningLine[] {
  const text = nextStep(summary);
  return text === "" ? [] : [{ label: "Next", text, tone: "plain" }];
}

function warningsOf(summary: RunSummary): OpeningLine[] {
  const warnings: string[] = [];
  if (summary.sandbox === "none") {
    warnings.push(
      "RUN WITHOUT A SANDBOX. Nothing kept candidates from reading labels, writing the evaluator or using the network: no score below is proof.",
    );
  }
  if (summary.metric?.selfReported === true) {
    warnings.push(
      `${oneLine(summary.metric.name)} is SELF-REPORTED: it is taken from what the candidate reports, not measured by an evaluator.`,
    );
  }
  warnings.push(...lookWarnings(summary));
  if (summary.nullRun) warnings.push("NULL RUN: it ended without one valid trial.");
  const rests = summary.best?.restsOnRetracted ?? [];
  if (rests.length > 0)
    warnings.push(
      `The best rests on ${rests.join(", ")}, retracted since: it was built on or compared with ${rests.length === 1 ? "it" : "them"}.`,
    );
  if (summary.drift.length > 0)
    warnings.push(`The host drifted (${plural(summary.drift.length, "notice")}): ${oneLine(summary.drift.at(-1)?.message ?? "", 200)}`);
  return warnings.map((text) => ({ label: "WARNING", text, tone: "bad" }));
}

function wonLine(summary: RunSummary): OpeningLine {
  const { best, metric, baseline } = summary;
  const line = (text: string, tone: OpeningLine["tone"] = "plain"): OpeningLine => ({ label: "Won", text, tone });
  if (best === null || metric === null)
    return line(
      summary.state === "cancelled"
        ? "nothing: the run was cancelled before it was calibrated"
        : "nothing yet: the baseline is not calibrated",
    );
  const name = `${oneLine(metric.name)} (${metric.direction})`;
  if (summary.rule?.name === "compare")
    return line(`nothing, on purpose: candidates are compared with the baseline, ${significant(best.value)} ${name}; none is promoted`);
  if (best.trial === "t0") {
    const verb = isOver(summary.state) ? "nothing: no trial was promoted over" : "nothing yet: the leader is";
    return line(`${verb} the baseline, ${significant(best.value)} ${name}`);
  }
  const standing = best.confirmed ? "confirmed on fresh seeds" : "NOT confirmed: its own first measurement";
  const against = baseline === null ? "" : `; baseline ${significant(baseline.mean)}`;
  const words = best.hypothesis === "" ? "" : `: ${oneLine(best.hypothesis, 160)}${builtOnText(best.builtOn)}`;
  return line(`${best.trial}, ${significant(best.value)} ${name}, ${standing}${against}${words}`, "good");
}

/** What lies below a winner and was not kept itself may be what it gains by: a repair is its failed parent's idea. */
function builtOnText(below: NonNullable<RunSummary["best"]>["builtOn"]): string {
  if (below.length === 0) return "";
  const [last] = below.slice(-1);
  const earlier = below.length === 1 ? "" : ` and of ${below.length - 1} below`;
  return ` (with the change of ${last?.trial}${earlier}: ${oneLine(last?.hypothesis ?? "", 100)})`;
}

function gainLines(summary: RunSummary): OpeningLine[] {
  const { best } = summary;
  if (best === null || best.trial === "t0") {
    const smallest = summary.noise?.smallestGain ?? null;
    const text =
      smallest === null
        ? "no gain to judge"
        : `no gain to judge; the smallest that rule ${summary.rule?.name ?? ""} can see here is ${significant(smallest, 3)}`;
    return [{ label: "Sure", text, tone: "plain" }];
  }
  const over = best.overBaseline;
  const relative = over === null || over.percent === null ? "" : ` (${percent(over.percent)})`;
  const bounds =
    over === null || (over.lower === null && over.upper === null)
      ? ""
      : `, ${coverage(summary.rule?.level ?? 0.05)} interval ${range(over.lower, over.upper, signed)}`;
  const gained = over === null ? "not known" : `${signed(over.absolute)} over the baseline${relative}${bounds}${besideText(summary)}`;
  return [
    { label: "Gain", text: gained, tone: "plain" },
    { label: "Sure", text: best.gain === null ? "no verdict is recorded" : sureText(best.gain, summary), tone: "plain" },
  ];
}

/** From this on the baseline in the pairs is another number than the calibrated one that stands above. */
const apart = 0.05;

function besideText({ best, baseline }: RunSummary): string {
  const beside = best?.overBaseline?.beside ?? null;
  if (beside === null || baseline === null || Math.abs(beside - baseline.mean) <= apart * Math.abs(baseline.mean)) return "";
  return `; measured beside it, the baseline was ${significant(beside)} and not ${significant(baseline.mean)}`;
}

function errorLines({ rule, gate }: RunSummary): OpeningLine[] {
  return rule === null ? [] : [{ label: "Errors", text: ruleErrorsText(gate), tone: "plain" }];
}

const basisWords: Readonly<Record<GainSummary["basis"], string>> = {
  order: "by order alone, no interval",
  noise_floor: "from the calibrated noise",
  minimum_gain: "by the stated minimum gain",
  paired_records: "paired by record",
  paired_seeds: "paired by seed",
  paired_seeds_and_records: "paired by seed and record",
};

function sureText(gain: GainSummary, summary: RunSummary): string {
  const over = gain.over === null ? "the leader of its time" : gain.over === "t0" ? "the baseline" : gain.over;
  const bounded = gain.lower !== null || gain.upper !== null;
  const bounds = bounded ? `, ${coverage(gain.level)} interval ${range(gain.lower, gain.upper, signed)}` : "";
  const used = [gain.seeds > 0 ? plural(gain.seeds, "seed pair") : "", gain.records > 0 ? plural(gain.records, "record") : ""]
    .filter((part) => part !== "")
    .join(", ");
  const smallest = gain.smallestGain ?? summary.noise?.smallestGain ?? null;
  return `${resultWords[gain.result]} over ${over} by ${signed(gain.value)}${bounds}; ${basisWords[gain.basis]}${used === "" ? "" : ` (${used})`}${smallest === null ? "" : `; smallest visible gain ${significant(smallest, 3)}`}`;
}

/** A verdict's result, for people. */
export const resultWords: Readonly<Record<GainSummary["result"], string>> = {
  improved: "improved",
  not_improved: "not improved",
  undecided: "undecided",
};

function costLine(summary: RunSummary): OpeningLine {
  const { spend, progress } = summary;
  const trials = progress.cap === null ? plural(progress.done, "trial") : `${progress.done} of ${plural(progress.cap, "trial")}`;
  const parts = [trials, `${duration(spend.activeMs)} active`, `${duration(spend.computeMs)} CPU`];
  if (spend.costUsd > 0) parts.push(money(spend.costUsd));
  if (spend.tokens > 0) parts.push(`${count(spend.tokens)} tokens`);
  return { label: "Cost", text: parts.join(", "), tone: "plain" };
}

function failedLine(summary: RunSummary): OpeningLine {
  const { failures, progress, calls } = summary;
  const first = failures.causes[0];
  const refused = calls.refused + calls.failed;
  const lost = refused === 0 ? "" : `; ${plural(refused, "answer")} of researchers refused or failed`;
  if (first === undefined) return { label: "Failed", text: `nothing${lost}`, tone: "plain" };
  const share = failures.total === progress.done ? "all" : `${failures.total} of ${progress.done}`;
  return {
    label: "Failed",
    text: `${share} trials; most often (${first.n}) ${first.status}${first.stage === null ? "" : ` in ${first.stage}`}: ${oneLine(first.example.line, 160)} (${first.example.trial})${lost}`,
    tone: failures.total * 2 > progress.done ? "bad" : "plain",
  };
}
