import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Interpreters } from "./init-toolchain.js";

/** A program that `trialist init` may be meant for. */
export interface ScriptGuess {
  readonly path: string;
  readonly run: string;
  readonly points: number;
  readonly why: string;
}

/** Names of project scripts that are about measuring; others (lint, format, docs) are none of ours. */
const measured = /^(train|bench|benchmark|perf|experiment|main|start|fit|run)([:_-].*)?$/i;

/** What `pyproject.toml` and `package.json` name as programs. */
export async function entryPoints(folder: string, known: ReadonlySet<string>, interpreters: Interpreters): Promise<ScriptGuess[]> {
  return [...(await pythonEntryPoints(folder, known, interpreters)), ...(await packageScripts(folder, known))];
}

/** Lines `name = "package.module:function"` below `[project.scripts]`; no more of TOML is needed. */
async function pythonEntryPoints(folder: string, known: ReadonlySet<string>, interpreters: Interpreters): Promise<ScriptGuess[]> {
  if (!known.has("pyproject.toml")) return [];
  const text = await readFile(join(folder, "pyproject.toml"), "utf8").catch(() => "");
  const section = /^\[(?:project\.scripts|tool\.poetry\.scripts)\][ \t]*\n((?:(?!\[).*(?:\n|$))*)/m.exec(text)?.[1] ?? "";
  const found: ScriptGuess[] = [];
  for (const [, name = "", module = "", call = ""] of section.matchAll(/^\s*["']?([\w.-]+)["']?\s*=\s*["']([\w.]+):([\w.]+)["']/gm)) {
    const path = ["src/", ""]
      .map((root) => `${root}${module.replaceAll(".", "/")}`)
      .flatMap((base) => [`${base}.py`, `${base}/__init__.py`]);
    const file = path.find((each) => known.has(each));
    if (file === undefined) continue;
    const own = await readFile(join(folder, file), "utf8").catch(() => "");
    const words = /^if __name__ == ["']__main__["']/m.test(own)
      ? `-m ${module}`
      : `-c 'from ${module} import ${call.split(".")[0]}; ${call}()'`;
    const why = `\`${name}\` in the scripts of pyproject.toml`;
    found.push({ path: file, run: interpreters.module(words, file, known), points: measured.test(name) ? 60 : 20, why });
  }
  return found;
}

/** Scripts of `package.json`, as far as they name a file of this folder. */
async function packageScripts(folder: string, known: ReadonlySet<string>): Promise<ScriptGuess[]> {
  if (!known.has("package.json")) return [];
  let scripts: unknown;
  try {
    scripts = (JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as { scripts?: unknown } | null)?.scripts;
  } catch {
    return [];
  }
  if (typeof scripts !== "object" || scripts === null) return [];
  const found: ScriptGuess[] = [];
  for (const [name, command] of Object.entries(scripts)) {
    if (typeof command !== "string" || command.length > 1000 || !measured.test(name)) continue;
    const [program = "", ...rest] = command.trim().split(/\s+/);
    const path = rest.map((word) => word.replace(/^(\.\/)+/, "")).find((word) => known.has(word));
    if (path === undefined) continue;
    // Programs of packages are no programs of the system: Node runs them from where they were installed.
    const run =
      /^(node|sh|bash|python3?)$/.test(program) || program.includes("/") ? command.trim() : `node node_modules/.bin/${command.trim()}`;
    found.push({ path, run, points: 60, why: `\`${name}\` in the scripts of package.json` });
  }
  return found;
}
