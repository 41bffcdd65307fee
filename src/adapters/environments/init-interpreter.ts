import { constants } from "node:fs";
import { access, readFile, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { execa } from "execa";

/** A run command as the sandbox can carry it out. */
export interface RunCommand {
  readonly run: string;
  /** Prefix that must be bound, because the program is not below /usr; null when the system's own is used. */
  readonly use: string | null;
  readonly notes: readonly string[];
}

/** The first word that is a program: after `env` and assignments. */
const firstProgram = /^(\s*(?:env\s+)?(?:[A-Za-z_]\w*=\S*\s+)*)([^\s;&|<>()]+)/;
const shellWords = new Set(["cd", "set", "export", "if", "for", "while", "test", "[", "{", "echo", ".", "exec", "time", "ulimit"]);

/**
 * Finds out what carries a command: the system's programs need nothing; a venv, conda, pyenv or nvm needs its prefix
 * bound. A prefix that the sandbox's user cannot reach (root's home) is of no use, then the system's Python steps in.
 */
export async function resolveRunCommand(folder: string, run: string, pathVariable: string): Promise<RunCommand> {
  const [, before = "", program = ""] = firstProgram.exec(run) ?? [];
  if (program === "" || shellWords.has(program) || /[$`"'\\]/.test(program)) return { run, use: null, notes: [] };
  if (program.includes("/") && !isAbsolute(program) && !program.includes("/bin/")) return { run, use: null, notes: [] };
  const isPython = /^(python|python3)(\.\d+)?$/.test(program);
  const found = await locate(folder, program, pathVariable);
  const prefix = found === null ? null : isPython || /\/python[\d.]*$/.test(found) ? await pythonPrefix(found) : await programPrefix(found);
  const replaced = (by: string): string => `${before}${by}${run.slice(before.length + program.length)}`;
  if (isPython) return pythonCommand({ run, program, prefix, replaced });
  if (found === null || prefix === null)
    return { run, use: null, notes: [`\`${program}\` was not found on this machine: the first stage will fail until it is installed`] };
  if (isSystem(prefix)) return { run, use: null, notes: [] };
  return {
    // A relative path is none in a workspace; the prefix is on the PATH there.
    run: isAbsolute(program) ? run : replaced(basename(program)),
    use: prefix,
    notes: [`\`${program}\` lies in ${prefix}, which is bound read-only and not frozen`],
  };
}

async function pythonCommand(given: {
  run: string;
  program: string;
  prefix: string | null;
  replaced: (by: string) => string;
}): Promise<RunCommand> {
  const { run, program, prefix } = given;
  if (prefix !== null && !isSystem(prefix)) {
    return {
      run: isAbsolute(program) ? run : given.replaced(basename(program)),
      use: prefix,
      notes: [
        `\`${program}\` lies in ${prefix}, which is bound read-only and not frozen; a \`runtime.python\` with a hashed lock would freeze it`,
      ],
    };
  }
  const system = await systemPython(program);
  if (system === null)
    return { run, use: null, notes: [`\`${program}\` was not found on this machine: install Python through the system's package manager`] };
  return system === program
    ? { run, use: null, notes: [] }
    : { run: given.replaced(system), use: null, notes: [`the sandbox has no \`${program}\`: \`${system}\` is used`] };
}

/** The system's Python by the asked name, else `python3`; null when there is none. */
async function systemPython(program: string): Promise<string | null> {
  for (const name of [program, "python3"]) if (await isProgram(join("/usr/bin", name))) return name;
  return null;
}

async function locate(folder: string, program: string, pathVariable: string): Promise<string | null> {
  if (program.includes("/"))
    return (await isProgram(join(isAbsolute(program) ? "/" : folder, program))) ? join(isAbsolute(program) ? "/" : folder, program) : null;
  for (const place of pathVariable.split(":").filter(isAbsolute)) if (await isProgram(join(place, program))) return join(place, program);
  return null;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** Where a Python's packages are: asked of itself, since a shim such as pyenv's says nothing by its path. */
async function pythonPrefix(executable: string): Promise<string | null> {
  const asked = await execa(executable, ["-c", "import sys; print(sys.prefix)"], { reject: false, timeout: 20_000, stdin: "ignore" });
  return asked.failed || asked.stdout.trim() === "" ? null : asked.stdout.trim();
}

async function programPrefix(executable: string): Promise<string> {
  return dirname(dirname(await realpath(executable)));
}

function isSystem(prefix: string): boolean {
  return prefix === "/" || prefix === "/usr" || prefix.startsWith("/usr/");
}

/** Modules that Python scripts import and the system's Python lacks; a first run would only show the first of them. */
export async function missingModules(folder: string, files: readonly string[], local: ReadonlySet<string>): Promise<string[]> {
  const names = new Set<string>();
  for (const file of files.filter((path) => path.endsWith(".py"))) {
    const text = await readFile(join(folder, file), "utf8").catch(() => "");
    for (const name of importedNames(text)) if (!local.has(name)) names.add(name);
  }
  if (names.size === 0) return [];
  const script = "import importlib.util, sys; print('\\n'.join(n for n in sys.argv[1:] if importlib.util.find_spec(n) is None))";
  const asked = await execa("/usr/bin/python3", ["-I", "-c", script, ...names], { reject: false, timeout: 20_000, stdin: "ignore" });
  return asked.failed ? [] : asked.stdout.split("\n").filter((name) => name !== "");
}

/** Top-level names of `import a, b.c as d` and `from a.b import c`. */
function importedNames(text: string): string[] {
  const lists = [...text.matchAll(/^[ \t]*(?:import[ \t]+([^\n#;]+)|from[ \t]+([A-Za-z_]\w*))/gm)].map(
    ([, list, from]) => list ?? from ?? "",
  );
  return lists.flatMap((list) => list.split(",")).flatMap((item) => /^\s*([A-Za-z_]\w*)/.exec(item)?.[1] ?? []);
}
