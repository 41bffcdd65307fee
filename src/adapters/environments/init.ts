import { readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, isAbsolute, join, relative } from "node:path";
import { execa } from "execa";
import { TrialistError } from "../../core/protocol/errors.js";
import { entryAt, listFolder, listUnignored } from "./folder-files.js";
import { globOfPath, isGlob, normalizeGlob, pathFault, pathMatcher } from "./globs.js";
import { missingModules, resolveRunCommand } from "./init-interpreter.js";
import { contractText, type InitAnswers } from "./init-text.js";
import { type LoadedEnvironment, loadEnvironment } from "./load.js";
import { contractFile } from "./pack-layout.js";
import { didYouMean } from "./suggestions.js";

export type { InitAnswers } from "./init-text.js";

/** `trialist init` cannot write an environment from what it was told. */
export class InitRefusedError extends TrialistError {
  readonly kind = "refused";
}

/** Asks a person; the command line brings one that draws on the terminal. */
export interface Prompter {
  text(question: string, initial: string): Promise<string>;
  choose<T extends string>(question: string, options: readonly T[], initial: T): Promise<T>;
}

export interface InitResult {
  /** Files that were written, by absolute path. */
  readonly wrote: readonly string[];
  readonly environment: LoadedEnvironment;
  /** What a person should know before the first run. */
  readonly notes: readonly string[];
}

const interpreters: readonly [ending: RegExp, command: string][] = [
  [/\.py$/, "python3"],
  [/\.(sh)$/, "sh"],
  [/\.bash$/, "bash"],
  [/\.(js|mjs|cjs)$/, "node"],
  [/\.rb$/, "ruby"],
  [/\.pl$/, "perl"],
  [/\.R$/i, "Rscript"],
  [/\.jl$/, "julia"],
  [/\.lua$/, "lua"],
];

/** What a folder suggests by itself: its one script and how scripts of that kind are run. */
export async function suggestAnswers(folder: string): Promise<Partial<InitAnswers>> {
  const scripts = (await topLevelFiles(folder)).filter((path) => interpreters.some(([ending]) => ending.test(path)));
  const name = environmentName(basename(await realpath(folder)));
  const [script] = scripts;
  if (script === undefined || scripts.length > 1) return { name };
  return { name, edit: [script], run: await commandFor(folder, script) };
}

async function topLevelFiles(folder: string): Promise<string[]> {
  const entries = (await listUnignored(folder)) ?? (await listFolder(folder));
  return entries
    .filter((entry) => entry.kind === "file" && !entry.path.includes("/") && !entry.path.startsWith("."))
    .map((entry) => entry.path);
}

/** The usual way to run a script: what its first line says for shells, else by its ending. */
async function commandFor(folder: string, script: string): Promise<string> {
  const firstLine = (await readFile(join(folder, script), "utf8").catch(() => "")).split("\n", 1)[0] ?? "";
  const named = interpreters.find(([ending]) => ending.test(script))?.[1] ?? "sh";
  const program = named === "sh" && /^#!.*\bbash\b/.test(firstLine) ? "bash" : named;
  return `${program} ${/^[\w./-]+$/.test(script) ? script : `'${script.replaceAll("'", "'\\''")}'`}`;
}

function environmentName(folder: string): string {
  const plain = folder
    .normalize("NFKD")
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .replace(/-+$/, "");
  return plain.slice(0, 64) || "environment";
}

/** The direction that a metric of this name usually has; only ever a suggestion. */
export function usualDirection(metric: string): InitAnswers["direction"] {
  return /loss|err|rmse|mae|mse|perplexity|ppl|bpb|bits|time|second|latency|cost|size|bytes|memory|regret|distance/i.test(metric)
    ? "minimize"
    : "maximize";
}

/** Asks for what neither flags nor the folder answered. */
export async function askAnswers(folder: string, given: Partial<InitAnswers>, prompter: Prompter): Promise<InitAnswers> {
  const suggested = await suggestAnswers(folder);
  const edit =
    given.edit ?? words(await prompter.text("Which files may be edited? (separated by spaces)", suggested.edit?.join(" ") ?? ""));
  const first = edit[0];
  const run =
    given.run ??
    (await prompter.text("Which command runs the program?", suggested.run ?? (first === undefined ? "" : await commandFor(folder, first))));
  const metric = given.metric ?? (await prompter.text("What is the number called that it prints?", "score"));
  const direction =
    given.direction ?? (await prompter.choose("Which way is better?", ["maximize", "minimize"] as const, usualDirection(metric)));
  return { ...given, edit, run, metric, direction, name: given.name ?? suggested.name ?? "environment" };
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "");
}

/** Completes flags by what the folder suggests, without asking. @throws InitRefusedError naming the flags that are needed */
export async function completeAnswers(folder: string, given: Partial<InitAnswers>): Promise<InitAnswers> {
  const suggested = await suggestAnswers(folder);
  const edit = given.edit ?? suggested.edit;
  const [only] = edit ?? [];
  const run = given.run ?? suggested.run ?? (edit?.length === 1 && only !== undefined ? await commandFor(folder, only) : undefined);
  if (edit === undefined || run === undefined || given.metric === undefined) {
    const missing = [
      edit === undefined ? "--edit FILE" : null,
      run === undefined ? "--run COMMAND" : null,
      given.metric === undefined ? "--metric NAME" : null,
    ];
    throw new InitRefusedError({
      expected: "what may be edited, how it is run, and which number counts",
      found: `nothing for ${missing.filter((flag) => flag !== null).join(", ")}`,
      where: folder,
      todo: "For example: trialist init --yes --edit train.py --run 'python3 train.py' --metric score --direction maximize",
    });
  }
  return {
    ...given,
    edit,
    run,
    metric: given.metric,
    direction: given.direction ?? usualDirection(given.metric),
    name: given.name ?? suggested.name ?? "environment",
  };
}

/**
 * Writes `environment.yaml`, and `.trialist/` into git's ignore file where there is git; nothing else. What it writes
 * has passed the checks of `loadEnvironment` before it is written.
 * @throws InitRefusedError, EnvironmentInvalidError
 */
export async function initEnvironment(
  given: string,
  answers: InitAnswers,
  options: { readonly force: boolean; readonly pathVariable: string },
): Promise<InitResult> {
  const folder = await realpath(given).catch(() => null);
  if (folder === null)
    throw new InitRefusedError({
      expected: "an existing folder",
      found: "nothing there",
      where: given,
      todo: "Create it, or change into the folder with your script.",
    });
  const file = join(folder, contractFile);
  if (!options.force && (await stat(file).catch(() => null)) !== null) {
    throw new InitRefusedError({
      expected: `no ${contractFile} yet`,
      found: "one that is there already",
      where: file,
      todo: "Edit it, or write over it with --force.",
    });
  }
  const edit = await editableGlobs(folder, answers.edit);
  const command = await resolveRunCommand(folder, answers.run, options.pathVariable);
  const text = contractText({ ...answers, edit, run: command.run }, command.use);
  const environment = await loadEnvironment(folder, text);
  await replaceFile(file, text);
  const ignored = await ignoreRuns(folder);
  const notes = [
    ...command.notes,
    ...environment.notes,
    ...(command.use === null ? await moduleNotes(folder, environment) : []),
    ...ignored.notes,
  ];
  return { wrote: [file, ...ignored.wrote], environment, notes };
}

/** Every named file exists and lies inside; names with characters that globs give a meaning are written so that they match. */
async function editableGlobs(folder: string, edit: readonly string[]): Promise<string[]> {
  const known = ((await listUnignored(folder)) ?? (await listFolder(folder))).map((entry) => entry.path);
  const globs: string[] = [];
  for (const given of edit) {
    const path = normalizeGlob(isAbsolute(given) ? relative(folder, given) : given);
    const fault = pathFault(path);
    if (fault !== null)
      throw new InitRefusedError({
        expected: "editable files inside the folder",
        found: `${given}: ${fault}`,
        where: folder,
        todo: "Run `trialist init` in the folder that holds the files.",
      });
    if ((await entryAt(folder, path)) !== null) globs.push(isGlob(path) ? globOfPath(path) : path);
    else if (isGlob(path) && known.some(pathMatcher([path]))) globs.push(path);
    else if (known.some((one) => one.startsWith(`${path}/`))) globs.push(`${path}/**`);
    else
      throw new InitRefusedError({
        expected: "an editable file that exists",
        found: `no ${given}`,
        where: folder,
        todo: `Correct --edit: ${didYouMean(path, known, `the folder holds ${known.slice(0, 8).join(", ") || "no files"}.`)}`,
      });
  }
  return [...new Set(globs)];
}

async function moduleNotes(folder: string, environment: LoadedEnvironment): Promise<string[]> {
  const python = environment.baseline.filter((file) => file.path.endsWith(".py")).map((file) => file.source);
  const local = new Set(environment.files.map((file) => (file.path.split("/")[0] ?? "").replace(/\.py$/, "")));
  const missing = await missingModules(folder, python, local);
  if (missing.length === 0) return [];
  return [
    `the system's Python has no ${missing.join(", ")}: install it there, or add \`runtime: { use: VENV }\`, or \`runtime: { python: { lock: requirements.lock } }\``,
  ];
}

async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}.new`;
  try {
    await writeFile(temporary, text, { flag: "wx" });
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Keeps runs out of git. */
async function ignoreRuns(folder: string): Promise<{ wrote: string[]; notes: string[] }> {
  const asked = await execa("git", ["-c", "safe.directory=*", "-C", folder, "check-ignore", "--quiet", ".trialist/x"], {
    reject: false,
    stdin: "ignore",
  });
  // 0: ignored already, 1: not ignored, 128: no git here.
  if (asked.exitCode !== 1) return { wrote: [], notes: [] };
  const file = join(folder, ".gitignore");
  const entry = await entryAt(folder, ".gitignore");
  if (entry !== null && entry.kind !== "file")
    return { wrote: [], notes: [".gitignore is no regular file: add .trialist/ to what git ignores yourself"] };
  const before = entry === null ? "" : await readFile(file, "utf8");
  await writeFile(file, `${before}${before === "" || before.endsWith("\n") ? "" : "\n"}.trialist/\n`);
  return { wrote: [file], notes: [] };
}
