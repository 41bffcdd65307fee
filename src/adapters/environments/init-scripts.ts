import type { FolderEntry } from "./folder-files.js";
import { entryPoints, type ScriptGuess } from "./init-entry-points.js";
import { readSource } from "./init-sources.js";
import { findInterpreters, type Interpreters } from "./init-toolchain.js";

/** Most scripts whose text is looked at: those that lie highest come first. */
const readScripts = 200;

/** A script is taken without asking when it leads by as much. */
export const clearLead = 15;

const aside = /(^|\/)(tests?|docs?|examples?|vendor|third_party|node_modules|site-packages|build|dist|\.[^/]+)\//i;
const notPrograms =
  /(^|\/)(test_[^/]*|[^/]*_test|[^/]*\.(test|spec|config)|conftest|setup|__init__|noxfile|fabfile|tasks|manage|gulpfile|gruntfile)\.\w+$/i;

/** What the name of a file says. */
const names: readonly [pattern: RegExp, points: number][] = [
  [/(^|\/)train[^/]*\.\w+$/i, 50],
  [/(^|\/)(bench|benchmark)[^/]*\.\w+$/i, 40],
  [/(^|\/)(main|__main__)\.\w+$/i, 40],
  [/(^|\/)(run|fit|experiment|solve|solution|search)[^/]*\.\w+$/i, 25],
  [/(^|\/)(eval|evaluate|predict|infer|plot|prepare|download|preprocess|convert|utils?|helpers?)[^/]*\.\w+$/i, -20],
];

/** The programs of a folder, best first. Subfolders too; each is read once, and no program is started. */
export async function findScripts(folder: string, files: readonly FolderEntry[]): Promise<ScriptGuess[]> {
  const interpreters = await findInterpreters(folder);
  const scripts = files
    .filter((entry) => entry.kind === "file" && interpreters.runs(entry.path) && !notPrograms.test(entry.path))
    .filter((entry) => !entry.path.split("/").some((part) => part.startsWith(".")))
    .sort((a, b) => depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1))
    .slice(0, readScripts);
  const texts = new Map<string, string>();
  for (const { path } of scripts) texts.set(path, await readSource(folder, path));
  const modules = importedModules(texts);
  const known = new Set(files.map((entry) => entry.path));
  const guesses = [...texts].map(([path, text]) => judge(path, text, modules, interpreters, known));
  return merged([...(await entryPoints(folder, known, interpreters)), ...guesses]);
}

function judge(
  path: string,
  text: string,
  modules: ReadonlySet<string>,
  interpreters: Interpreters,
  known: ReadonlySet<string>,
): ScriptGuess {
  const reasons: string[] = [];
  let points = 0;
  const add = (some: number, reason: string): void => {
    points += some;
    reasons.push(reason);
  };
  const named = names.find(([pattern]) => pattern.test(path));
  if (named !== undefined) add(named[1], named[1] > 0 ? "named like a program that is measured" : "named like a helper");
  if (/^if __name__ == ["']__main__["']/m.test(text)) add(20, 'it has `if __name__ == "__main__"`');
  if (/^#!/.test(text)) add(5, "it starts with #!");
  if (aside.test(path)) add(-60, "it lies in a folder of tests, documentation or other people's code");
  if (modules.has(moduleName(path))) add(-25, "other scripts import it");
  if (depth(path) > 0) points -= 6 * depth(path);
  return { path, run: interpreters.command(path, text, known), points, why: reasons.join(", ") || "a script" };
}

function moduleName(path: string): string {
  return (path.split("/").at(-1) ?? "").replace(/\.\w+$/, "");
}

/** Last parts of what scripts import: `pkg.model` and `./model.js` are both `model`. */
function importedModules(texts: ReadonlyMap<string, string>): Set<string> {
  const found = new Set<string>();
  for (const text of texts.values()) {
    for (const [, from = "", list = ""] of text.matchAll(/^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+([^\n#]+)/gm))
      for (const name of [from, ...list.split(",")]) found.add(name.trim().split(".").at(-1) ?? "");
    for (const [, list = ""] of text.matchAll(/^[ \t]*import[ \t]+([\w., \t]+)/gm))
      for (const name of list.split(",")) found.add(name.trim().split(/[.\s]/)[0] ?? "");
    for (const [, path = ""] of text.matchAll(/(?:from|require\()\s*["']\.{1,2}\/([^"'\n]+)["']/g)) found.add(moduleName(path));
  }
  return found;
}

/** One guess for each file: what a project file names it for comes before what its own name says. */
function merged(guesses: readonly ScriptGuess[]): ScriptGuess[] {
  const byPath = new Map<string, ScriptGuess>();
  for (const guess of guesses) {
    const before = byPath.get(guess.path);
    if (before === undefined) byPath.set(guess.path, guess);
    else if (guess.points > 0)
      byPath.set(guess.path, { ...before, points: before.points + guess.points, why: `${before.why}, ${guess.why}` });
  }
  return [...byPath.values()].sort((a, b) => b.points - a.points || depth(a.path) - depth(b.path) || (a.path < b.path ? -1 : 1));
}

function depth(path: string): number {
  return path.split("/").length - 1;
}

/** The one that stands out: the only program, or one that leads clearly; null when a person has to say. */
export function standsOut(guesses: readonly ScriptGuess[]): ScriptGuess | null {
  const [first, second] = guesses;
  if (first === undefined) return null;
  if (second === undefined || first.points >= second.points + clearLead) return first;
  return null;
}
