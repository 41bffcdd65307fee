import { lstat, readFile } from "node:fs/promises";
import { join } from "node:path";

/** How the scripts of a folder are run. */
export interface Interpreters {
  /** The Python that a command starts with: the folder's own environment, else `python3`. */
  readonly python: string;
  /** Where that environment lies, and why it was taken; null when the one on the PATH is used. */
  readonly environment: { readonly folder: string; readonly why: string } | null;
  /** Whether a file is a script by its ending. */
  runs(path: string): boolean;
  /** The usual way to run a script. */
  command(path: string, text: string, known: ReadonlySet<string>): string;
  /** The way to run a Python module or a function of it. */
  module(words: string, from: string, known: ReadonlySet<string>): string;
}

const endings: readonly [ending: RegExp, command: string][] = [
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

/** Names that people give to environments inside a repository, in the order in which they are taken. */
const environmentFolders = [".venv", "venv", ".env", "env", ".conda", "conda-env"];

export async function findInterpreters(folder: string): Promise<Interpreters> {
  const environment = await findEnvironment(folder);
  const python = environment === null ? "python3" : `${environment.folder}/bin/python`;
  const program = (path: string, text: string): string => {
    const named = endings.find(([ending]) => ending.test(path))?.[1] ?? "sh";
    if (named === "python3") return python;
    return named === "sh" && /^#!.*\bbash\b/.test(text.split("\n", 1)[0] ?? "") ? "bash" : named;
  };
  return {
    python,
    environment,
    runs: (path) => endings.some(([ending]) => ending.test(path)),
    command(path, text, known) {
      const started = program(path, text);
      if (!path.endsWith(".py")) return `${started} ${shellWord(path)}`;
      const prefix = pythonPath(path, text, known);
      if (!/^[ \t]*from[ \t]+\./m.test(text)) return `${prefix}${started} ${shellWord(path)}`;
      const inSource = path.startsWith("src/");
      const module = path.slice(inSource ? 4 : 0, -3).replaceAll("/", ".");
      return `${inSource ? "PYTHONPATH=src " : ""}${started} -m ${module}`;
    },
    module(words, from, known) {
      return `${pythonPath(from, "", known) || (from.startsWith("src/") ? "PYTHONPATH=src " : "")}${python} ${words}`;
    },
  };
}

/** A script sees the modules beside it; one that imports from `src` or from the top of the repository needs to be told. */
function pythonPath(path: string, text: string, known: ReadonlySet<string>): string {
  const imported = [...text.matchAll(/^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)/gm)].map(([, name = ""]) => name);
  const slash = path.lastIndexOf("/");
  const own = slash < 0 ? "" : path.slice(0, slash + 1);
  const lies = (root: string, name: string): boolean =>
    known.has(`${root}${name}.py`) ||
    known.has(`${root}${name}/__init__.py`) ||
    [...known].some((file) => file.startsWith(`${root}${name}/`) && file.endsWith(".py"));
  const needed = imported.filter((name) => !lies(own, name));
  const roots = ["src/", ""].filter((root) => root !== own && needed.some((name) => lies(root, name)));
  return roots.length === 0 ? "" : `PYTHONPATH=${roots.map((root) => (root === "" ? "." : "src")).join(":")} `;
}

/** A word for the shell: quoted where it has to be. */
export function shellWord(text: string): string {
  return /^[\w./@%+,-]+$/.test(text) && !text.startsWith("-") ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

async function findEnvironment(folder: string): Promise<Interpreters["environment"]> {
  for (const name of environmentFolders) {
    const place = join(folder, name);
    const python = await lstat(join(place, "bin", "python")).catch(() => null);
    if (python === null) continue;
    if ((await lstat(join(place, "pyvenv.cfg")).catch(() => null)) !== null)
      return { folder: name, why: `${name} is a virtual environment` };
    if ((await lstat(join(place, "conda-meta")).catch(() => null)) !== null) return { folder: name, why: `${name} is a conda environment` };
  }
  return null;
}

/** What a folder's project files say about packages while there is no environment that holds them. */
export async function packageNotes(folder: string, known: ReadonlySet<string>, interpreters: Interpreters, run: string): Promise<string[]> {
  if (/\bnode\b/.test(run) && known.has("package.json")) {
    const text = await readFile(join(folder, "package.json"), "utf8").catch(() => "");
    const wanted = /"(dependencies|devDependencies)"\s*:\s*\{\s*"/.test(text);
    const there = (await lstat(join(folder, "node_modules")).catch(() => null)) !== null;
    return wanted && !there
      ? ["package.json names packages and there is no node_modules: `npm install`, then `trialist init --force`"]
      : [];
  }
  if (!/python/.test(run) || interpreters.environment !== null) return [];
  const lists = ["uv.lock", "poetry.lock", "requirements.txt", "environment.yml"].filter((name) => known.has(name));
  const [list] = lists;
  if (list === undefined) return [];
  const make =
    list === "uv.lock"
      ? "`uv sync`"
      : list === "requirements.txt"
        ? "`python3 -m venv .venv && .venv/bin/pip install -r requirements.txt`"
        : "an environment in .venv";
  return [`${list} names packages and this folder has no environment with them: make one (${make}), then \`trialist init --force\``];
}
