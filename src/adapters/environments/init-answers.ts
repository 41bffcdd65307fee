import { isGlob } from "./globs.js";
import type { MetricGuess } from "./init-metrics.js";
import { commandOf, type FolderFacts, list, lookAtFolder, type Proposal, proposalFor } from "./init-proposal.js";
import { InitRefusedError } from "./init-refused.js";
import { programOf } from "./init-sources.js";
import type { InitAnswers } from "./init-text.js";
import { shellWord } from "./init-toolchain.js";

/** Asks a person; the command line brings one that draws on the terminal. */
export interface Prompter {
  text(question: string, initial: string): Promise<string>;
  choose<T extends string>(question: string, options: readonly T[], initial: T): Promise<T>;
}

/** A metric is taken without asking when it leads by as much. */
const clearLead = 8;

/** The direction that a metric of this name usually has; only ever a suggestion. */
export function usualDirection(metric: string): InitAnswers["direction"] {
  if (/per_?s(ec)?|throughput|ops/i.test(metric)) return "maximize";
  return /loss|err|rmse|mae|mse|perplexity|ppl|bpb|bits|time|second|elapsed|latency|cost|size|bytes|memory|regret|distance|(^|_)ms$/i.test(
    metric,
  )
    ? "minimize"
    : "maximize";
}

/** Asks for what flags did not answer; what the folder suggests, and why, stands in the question. */
export async function askAnswers(folder: string, given: Partial<InitAnswers>, prompter: Prompter): Promise<InitAnswers> {
  const facts = await lookAtFolder(folder);
  const script = (await scriptOf(facts, given)) ?? (await askScript(facts, given, prompter));
  const before = await proposalFor(facts, script, given.run ?? null, given.edit ?? null);
  const edit =
    given.edit ??
    words(
      await prompter.text(
        question("Which files may be edited? (separated by spaces)", before.editWhy),
        before.edit.map(shellWord).join(" "),
      ),
    );
  const program = script ?? edit[0] ?? null;
  const known = facts.scripts.find((guess) => guess.path === program);
  const run =
    given.run ??
    (await prompter.text(
      question("Which command runs the program?", known?.why ?? ""),
      program === null ? "" : await commandOf(facts, program),
    ));
  const proposal = await proposalFor(facts, program, run, edit);
  const metric = await askMetric(given, proposal, prompter);
  const direction =
    given.direction ?? (await prompter.choose("Which way is better?", ["maximize", "minimize"] as const, usualDirection(metric.metric)));
  const mounts = [...(given.mounts ?? [])];
  for (const mount of proposal.mounts) {
    const answer = await prompter.choose(`Bind ${mount.source} read-only? (${mount.why})`, ["yes", "no"] as const, "yes");
    if (answer === "yes") mounts.push(mount);
  }
  return { ...given, edit, run, ...metric, direction, mounts, name: given.name ?? facts.name, reasons: proposal.notes };
}

function question(asked: string, why: string): string {
  return why === "" ? asked : `${asked}\n  suggested: ${why}`;
}

async function askScript(facts: FolderFacts, given: Partial<InitAnswers>, prompter: Prompter): Promise<string | null> {
  if (given.edit !== undefined || given.run !== undefined || facts.scripts.length < 2) return null;
  const other = "another";
  const options = [...facts.scripts.slice(0, 8).map((guess) => guess.path), other];
  const picked = await prompter.choose("Which program is it about?", options, options[0] ?? other);
  return picked === other ? null : picked;
}

async function askMetric(
  given: Partial<InitAnswers>,
  proposal: Proposal,
  prompter: Prompter,
): Promise<Pick<InitAnswers, "metric" | "metricFile">> {
  const file = given.metricFile === undefined ? {} : { metricFile: given.metricFile };
  if (given.metric !== undefined) return { metric: given.metric, ...file };
  const [best] = proposal.metrics;
  const asked = "What is the number called that it prints, or writes into a JSON file?";
  const metric = await prompter.text(question(asked, proposal.metrics.slice(0, 5).map(described).join("; ")), best?.name ?? "score");
  const guess = proposal.metrics.find((each) => each.name === metric);
  return { metric, ...(given.metricFile === undefined && guess?.file != null ? { metricFile: guess.file } : file) };
}

function described({ name, why }: MetricGuess): string {
  return `${name} (${why})`;
}

/** Words as a shell would cut them, with commas too: names with spaces are quoted. */
function words(text: string): string[] {
  return [...text.matchAll(/'((?:[^']|'\\'')*)'|"([^"]*)"|[^\s,]+/g)].map(
    ([whole, one, two]) => one?.replaceAll("'\\''", "'") ?? two ?? whole,
  );
}

/** The file that all is about: what the command names, the one file that may be edited, or what stands out. */
async function scriptOf(facts: FolderFacts, given: Partial<InitAnswers>): Promise<string | null> {
  const files = new Set(facts.files.map((file) => file.path));
  if (given.run !== undefined) {
    const named = words(given.run).map((word) => word.replace(/^(\.\/)+/, ""));
    const module = /\s-m\s+([\w.]+)/.exec(given.run)?.[1]?.replaceAll(".", "/");
    const modules = module === undefined ? [] : ["src/", ""].flatMap((root) => [`${root}${module}.py`, `${root}${module}/__main__.py`]);
    return [...modules, ...named].find((path) => files.has(path)) ?? null;
  }
  const only = given.edit?.length === 1 ? given.edit[0]?.replace(/^(\.\/)+/, "") : undefined;
  const isScript = facts.scripts.some((guess) => guess.path === only) || (only !== undefined && !files.has(only) && !isGlob(only));
  if (only === undefined || !isScript) return facts.script?.path ?? null;
  // A file that the program imports is changed, and the program is run.
  const program = facts.script === null ? [] : await programOf(facts.folder, facts.script.path, facts.files);
  return program.some((source) => source.path === only) ? (facts.script?.path ?? only) : only;
}

/** Completes flags by what the folder suggests, without asking. @throws InitRefusedError naming the flags that are needed */
export async function completeAnswers(folder: string, given: Partial<InitAnswers>): Promise<InitAnswers> {
  const facts = await lookAtFolder(folder);
  const script = await scriptOf(facts, given);
  const run = given.run ?? (script === null ? undefined : await commandOf(facts, script));
  const proposal = await proposalFor(facts, script, run ?? null, given.edit ?? null);
  const edit = given.edit ?? (proposal.edit.length === 0 ? undefined : proposal.edit);
  const metric = chosenMetric(given, proposal);
  if (edit === undefined || run === undefined || metric === null) throw missing(facts, proposal, { edit, run, metric });
  return {
    ...given,
    edit,
    run,
    ...metric.answers,
    direction: given.direction ?? usualDirection(metric.answers.metric),
    mounts: [
      ...(given.mounts ?? []),
      ...proposal.mounts.filter(({ target }) => given.mounts?.every((mount) => mount.target !== target) ?? true),
    ],
    name: given.name ?? facts.name,
    usesOutputFolder: given.usesOutputFolder ?? proposal.usesOutputFolder,
    reasons: [
      ...(given.edit === undefined ? [`may be edited: ${list(edit)} (${proposal.editWhy})`] : []),
      ...(given.run === undefined && script !== null
        ? [`run: \`${run}\` (${facts.scripts.find((guess) => guess.path === script)?.why ?? "by its ending"})`]
        : []),
      ...(metric.why === null ? [] : [`metric: ${metric.answers.metric} (${metric.why})`]),
      ...(given.direction === undefined ? [`direction: ${usualDirection(metric.answers.metric)} (by the metric's name)`] : []),
      ...proposal.mounts.map((mount) => `bound read-only: ${mount.source} (${mount.why})`),
      ...proposal.notes,
    ],
  };
}

interface ChosenMetric {
  readonly answers: Pick<InitAnswers, "metric" | "metricFile">;
  /** Null: it was given. */
  readonly why: string | null;
}

function chosenMetric(given: Partial<InitAnswers>, proposal: Proposal): ChosenMetric | null {
  const file = given.metricFile;
  if (given.metric !== undefined) {
    const written = proposal.metrics.filter((guess) => guess.name === given.metric);
    const found =
      file ??
      (given.pattern === undefined && written.length > 0 && written.every((guess) => guess.file !== null) ? written[0]?.file : null);
    const why = file === undefined && found != null ? (written[0]?.why ?? null) : null;
    return { answers: { metric: given.metric, ...(found == null ? {} : { metricFile: found }) }, why };
  }
  const guesses = proposal.metrics.filter((guess) => file === undefined || guess.file === file);
  const [first, ...others] = guesses;
  const rival = others.find((guess) => guess.name !== first?.name);
  if (first === undefined || given.pattern !== undefined || (rival !== undefined && first.points < rival.points + clearLead)) return null;
  const from = file ?? first.file;
  return { answers: { metric: first.name, ...(from === null ? {} : { metricFile: from }) }, why: first.why };
}

function missing(
  facts: FolderFacts,
  proposal: Proposal,
  has: { readonly edit: readonly string[] | undefined; readonly run: string | undefined; readonly metric: unknown },
): InitRefusedError {
  const flags = [
    has.edit === undefined ? "--edit FILE" : "",
    has.run === undefined ? "--run COMMAND" : "",
    has.metric === null ? "--metric NAME" : "",
  ];
  const scripts =
    has.run === undefined && facts.scripts.length > 0
      ? `; programs that may be meant: ${list(facts.scripts.map(({ path, why }) => `${path} (${why})`))}`
      : "";
  const metrics =
    has.metric === null && proposal.metrics.length > 0 ? `; numbers that it seems to report: ${list(proposal.metrics.map(described))}` : "";
  const [script] = facts.scripts;
  const example = {
    edit: shellWord(has.edit?.[0] ?? script?.path ?? "train.py"),
    run: has.run ?? script?.run ?? "python3 train.py",
    metric: proposal.metrics[0]?.name ?? "score",
  };
  return new InitRefusedError({
    expected: "what may be edited, how it is run, and which number counts",
    found: `nothing for ${flags.filter((flag) => flag !== "").join(", ")}${scripts}${metrics}`,
    where: facts.folder,
    todo: `For example: trialist init --yes --edit ${example.edit} --run ${shellQuoted(example.run)} --metric ${example.metric} --direction ${usualDirection(example.metric)}`,
  });
}

function shellQuoted(command: string): string {
  return `'${command.replaceAll("'", "'\\''")}'`;
}
