import { isCancel, select, text } from "@clack/prompts";
import { digestEnvironment } from "../adapters/environments/freeze.js";
import {
  askAnswers,
  completeAnswers,
  type InitAnswers,
  InitRefusedError,
  type InitResult,
  initEnvironment,
  type Prompter,
} from "../adapters/environments/init.js";
import { loadEnvironment } from "../adapters/environments/load.js";
import { TrialistError } from "../core/protocol/errors.js";
import { duration } from "../research/report/numbers.js";
import type { Host } from "./environments.js";
import { type Baseline, type BaselineListener, measureBaseline } from "./init-baseline.js";
import { type Costs, costsOf, type SuggestedLimits, suggestedLimits } from "./init-costs.js";

/** A second measurement that takes no longer than this is made without asking, where nobody can be asked. */
const unaskedMs = 60_000;

/** Makes an environment of a folder: by asking where there is a terminal, else by flags alone. */
export async function initFolder(
  folder: string,
  given: Partial<InitAnswers>,
  options: { readonly ask: boolean; readonly force: boolean },
): Promise<InitResult> {
  const answers = asks(options) ? await askAnswers(folder, given, terminalPrompter) : await completeAnswers(folder, given);
  return initEnvironment(folder, answers, { force: options.force, pathVariable: process.env.PATH ?? "/usr/bin:/bin" });
}

function asks(options: { readonly ask: boolean }): boolean {
  return options.ask && process.stdin.isTTY === true;
}

/** Digest of a folder's environment as it lies there now: what a run would freeze it as. Null where it cannot be had. */
export async function digestOfFolder(host: Host, folder: string): Promise<string | null> {
  try {
    return await digestEnvironment(await loadEnvironment(folder), host.cache);
  } catch (error) {
    if (error instanceof TrialistError) return null;
    throw error;
  }
}

/** What came of measuring the baseline of a fresh environment. */
export interface MeasuredInit {
  readonly baseline: Baseline;
  /** Null where the baseline gave no number. */
  readonly costs: Costs | null;
  /** The limits that were written; null as above. */
  readonly limits: SuggestedLimits | null;
  /** Whether the number was another one on another seed; null when nobody wanted to know. */
  readonly varies: boolean | null;
}

/**
 * Measures a fresh environment's baseline once and writes what follows from it into the file: limits, or why there is no
 * number. A second measurement, on another seed, says whether the number varies, and with it which rule can be trusted: a
 * person is asked, and where nobody can be asked it is made when it takes a minute at most.
 */
export async function measureInit(
  host: Host,
  made: InitResult,
  options: { readonly ask: boolean; readonly listener: BaselineListener; readonly signal: AbortSignal },
): Promise<MeasuredInit> {
  const { folder } = made.environment;
  const measure = (offset: number): Promise<Baseline> => attempted(host, folder, offset, options);
  const baseline = await measure(0);
  if (baseline.status !== "measured") {
    await made.rewrite({ note: `${baseline.status}: ${baseline.reason ?? "no reason was given"}` });
    return { baseline, costs: null, limits: null, varies: null };
  }
  const wanted = asks(options) ? await wantsAnother(baseline.wallMs) : baseline.wallMs <= unaskedMs;
  const second = wanted ? await measure(1) : null;
  const name = made.environment.environment.metrics[0]?.name ?? "";
  const varies = second?.status === "measured" ? second.values?.[name] !== baseline.values?.[name] : null;
  const limits = suggestedLimits({
    wallMs: Math.max(baseline.wallMs, second?.wallMs ?? 0),
    peakMemoryBytes: Math.max(baseline.peakMemoryBytes, second?.peakMemoryBytes ?? 0),
  });
  const { environment } = await made.rewrite({ ...limits, varies: varies === true });
  return { baseline, costs: costsOf(environment, baseline.trialMs), limits, varies };
}

function wantsAnother(wallMs: number): Promise<boolean> {
  const question = `Measure it once more on another seed, to see whether the number varies? It takes about ${duration(wallMs)}.`;
  return chosen(question, ["yes", "no"] as const, "yes", "What was written before stays.").then((answer) => answer === "yes");
}

/** What keeps a baseline from being measured at all is told like a failure of it: the environment is written already. */
async function attempted(
  host: Host,
  folder: string,
  offset: number,
  options: { readonly listener: BaselineListener; readonly signal: AbortSignal },
): Promise<Baseline> {
  try {
    return await measureBaseline(host, folder, offset, options.listener, options.signal);
  } catch (error) {
    if (!(error instanceof TrialistError)) throw error;
    const status = error.kind === "infrastructure" ? "infrastructure_error" : "not_measured";
    return {
      status,
      values: null,
      reason: error.message,
      stages: 0,
      trialMs: 0,
      wallMs: 0,
      cpuMs: 0,
      peakMemoryBytes: 0,
      output: "",
      hints: [],
    };
  }
}

const terminalPrompter: Prompter = {
  async text(question, initial) {
    return answered(await text({ message: question, initialValue: initial }), "Nothing was written.");
  },
  choose: (question, choices, initial) => chosen(question, choices, initial, "Nothing was written."),
};

/** `left`: what whoever leaves is told about the folder. */
async function chosen<T extends string>(question: string, choices: readonly T[], initial: T, left: string): Promise<T> {
  const options = choices.map((value) => ({ value: value as string, label: value as string }));
  return answered(await select<string>({ message: question, options, initialValue: initial }), left) as T;
}

function answered(answer: string | symbol, left: string): string {
  if (!isCancel(answer) && typeof answer === "string") return answer;
  throw new InitRefusedError({ expected: "an answer", found: "that you left", todo: left });
}
