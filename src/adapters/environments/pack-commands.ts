import { normalizePath } from "./globs.js";

const interpreters = /^(python[0-9.]*|pypy3?|node|deno|bun|sh|bash|dash|zsh|ruby|perl|Rscript|julia|lua|php)$/;
const scriptName = /^[^-$*?<>|&{}~/][^$*?<>|&{}]*\.(py|sh|bash|js|mjs|cjs|ts|rb|pl|R|r|jl|lua|php)$/;

function words(command: string): string[] {
  return command
    .split(/[\s;&|"'()<>=]+/)
    .map((word) => word.replace(/^(\.\/)+/, ""))
    .filter((word) => word !== "");
}

/** Scripts that a command certainly needs: the first argument of an interpreter, or a `./script`. Says nothing after `cd`. */
export function scriptsOf(command: string): string[] {
  if (/(^|[\s;&|])cd\s/.test(command)) return [];
  const scripts: string[] = [];
  for (const part of command.split(/&&|\|\||[;|\n]/)) {
    const [program, ...rest] = part.trim().split(/\s+/);
    if (program === undefined) continue;
    if (program.startsWith("./")) scripts.push(normalizePath(program));
    if (!interpreters.test(program)) continue;
    const first = rest.find((word) => !word.startsWith("-"));
    const before = first === undefined ? [] : rest.slice(0, rest.indexOf(first));
    // After -m, -c, -e and their like the next word is no file.
    if (first !== undefined && before.every((option) => !/^-\w*[mce]$|^--/.test(option)) && scriptName.test(first))
      scripts.push(normalizePath(first));
  }
  return scripts;
}

/** Files of the pack that a command names, also as a Python module (`-m package.module`) or as a folder. */
export function filesNamedBy(command: string, files: ReadonlyMap<string, unknown>): string[] {
  const named = new Set<string>();
  for (const word of words(command)) {
    const path = normalizePath(word);
    if (files.has(path)) named.add(path);
    const module = /^[A-Za-z_][\w.]*$/.test(word) ? word.replaceAll(".", "/") : null;
    if (module !== null && files.has(`${module}.py`)) named.add(`${module}.py`);
    for (const folder of [path, module]) {
      if (folder === null || folder === ".") continue;
      for (const file of files.keys()) if (file.startsWith(`${folder}/`)) named.add(file);
    }
  }
  return [...named];
}
