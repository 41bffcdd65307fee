import { readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { isAbsolute, join, relative } from "node:path";
import { execa } from "execa";
import { entryAt, type FolderEntry, listFolder, listUnignored } from "./folder-files.js";
import { globOfPath, isGlob, normalizeGlob, pathFault, pathMatcher } from "./globs.js";
import { lookAtGit } from "./init-git.js";
import { cannotWrite, gitNotes, refusePointers } from "./init-hazards.js";
import { missingModules, resolveRunCommand } from "./init-interpreter.js";
import { InitRefusedError, noFolder } from "./init-refused.js";
import { contractText, type InitAnswers, type MeasuredFacts } from "./init-text.js";
import { type LoadedEnvironment, loadEnvironment } from "./load.js";
import { contractFile } from "./pack-layout.js";
import { didYouMean } from "./suggestions.js";

export { askAnswers, completeAnswers, type Prompter } from "./init-answers.js";
export { InitRefusedError } from "./init-refused.js";
export type { InitAnswers, MeasuredFacts } from "./init-text.js";

export interface InitResult {
  /** Files that were written, by absolute path. */
  readonly wrote: readonly string[];
  readonly environment: LoadedEnvironment;
  /** What a person should know before the first run. */
  readonly notes: readonly string[];
  /** Writes the file anew with what only a measurement could tell. */
  readonly rewrite: (found: MeasuredFacts) => Promise<LoadedEnvironment>;
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
  if (folder === null) throw noFolder(given);
  const file = join(folder, contractFile);
  if (!options.force && (await stat(file).catch(() => null)) !== null) {
    throw new InitRefusedError({
      expected: `no ${contractFile} yet`,
      found: "one that is there already",
      where: file,
      todo: "Edit it, or write over it with --force.",
    });
  }
  const git = await lookAtGit(folder);
  const files = (git === null ? null : await listUnignored(folder)) ?? (await listFolder(folder));
  const pointers = await refusePointers(folder, files);
  const edit = await editableGlobs(folder, answers.edit, files);
  const command = await resolveRunCommand(folder, answers.run, options.pathVariable);
  const resolved = { ...answers, edit, run: command.run };
  const text = contractText(resolved, command.use);
  const environment = await loadEnvironment(folder, text);
  await replaceFile(file, text).catch((error: unknown) => {
    throw cannotWrite(folder, error);
  });
  const ignored = git === null ? { wrote: [], notes: [] } : await ignoreRuns(folder);
  const notes = [
    ...(answers.reasons ?? []),
    ...gitNotes(folder, git),
    ...pointers,
    ...command.notes,
    ...environment.notes,
    ...(command.use === null ? await moduleNotes(folder, environment) : []),
    ...ignored.notes,
  ];
  const rewrite = async (found: MeasuredFacts): Promise<LoadedEnvironment> => {
    const anew = contractText(resolved, command.use, found);
    const checked = await loadEnvironment(folder, anew);
    await replaceFile(file, anew);
    return checked;
  };
  return { wrote: [file, ...ignored.wrote], environment, notes, rewrite };
}

/** Every named file exists and lies inside; names with characters that globs give a meaning are written so that they match. */
async function editableGlobs(folder: string, edit: readonly string[], files: readonly FolderEntry[]): Promise<string[]> {
  const known = files.map((entry) => entry.path);
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
    if (entryAt(folder, path) !== null) globs.push(isGlob(path) ? globOfPath(path) : path);
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
  const local = new Set(environment.files.flatMap((file) => file.path.split("/").map((part) => part.replace(/\.py$/, ""))));
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
  const entry = entryAt(folder, ".gitignore");
  if (entry !== null && entry.kind !== "file")
    return { wrote: [], notes: [".gitignore is no regular file: add .trialist/ to what git ignores yourself"] };
  try {
    const before = entry === null ? "" : await readFile(file, "utf8");
    await writeFile(file, `${before}${before === "" || before.endsWith("\n") ? "" : "\n"}.trialist/\n`);
  } catch (error) {
    return {
      wrote: [],
      notes: [`.gitignore cannot be written (${(error as Error).message}): add .trialist/ to what git ignores yourself`],
    };
  }
  return { wrote: [file], notes: [] };
}
