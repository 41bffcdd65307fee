import { realpath } from "node:fs/promises";
import { basename } from "node:path";
import { type FolderEntry, listFolder, listUnignored } from "./folder-files.js";
import { pathMatcher } from "./globs.js";
import { findData, type MountGuess } from "./init-data.js";
import type { ScriptGuess } from "./init-entry-points.js";
import { type GitFacts, lookAtGit } from "./init-git.js";
import { findMetrics, type MetricGuess } from "./init-metrics.js";
import { noFolder } from "./init-refused.js";
import { findScripts, standsOut } from "./init-scripts.js";
import { programOf, readSource, type SourceFile } from "./init-sources.js";
import { findInterpreters, packageNotes } from "./init-toolchain.js";

/** What a folder looks like, before anybody said what it is for. */
export interface FolderFacts {
  readonly folder: string;
  /** What git does not ignore; outside git, all but the folders of tools. */
  readonly files: readonly FolderEntry[];
  readonly git: GitFacts | null;
  /** Programs that may be meant, the likeliest first. */
  readonly scripts: readonly ScriptGuess[];
  /** The one that stands out; null when there is none, or when a person has to say. */
  readonly script: ScriptGuess | null;
  readonly name: string;
}

/** What follows from a script: files that may be edited, the numbers it reports, what it reads besides the pack. */
export interface Proposal {
  readonly edit: readonly string[];
  readonly editWhy: string;
  readonly metrics: readonly MetricGuess[];
  readonly mounts: readonly MountGuess[];
  /** A source writes below TRIALIST_OUTPUT by itself. */
  readonly usesOutputFolder: boolean;
  readonly notes: readonly string[];
}

/** Looks at a folder; nothing in it is run. */
export async function lookAtFolder(given: string): Promise<FolderFacts> {
  const folder = await realpath(given).catch(() => null);
  if (folder === null) throw noFolder(given);
  const git = await lookAtGit(folder);
  const files = (git === null ? null : await listUnignored(folder)) ?? (await listFolder(folder));
  const scripts = await findScripts(folder, files);
  return { folder, files, git, scripts, script: standsOut(scripts), name: environmentName(basename(folder)) };
}

function environmentName(folder: string): string {
  const plain = folder
    .normalize("NFKD")
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .replace(/-+$/, "");
  return plain.slice(0, 64) || "environment";
}

/** The usual way to run one file of the folder. */
export async function commandOf(facts: FolderFacts, path: string): Promise<string> {
  const known = facts.scripts.find((guess) => guess.path === path);
  if (known !== undefined) return known.run;
  const interpreters = await findInterpreters(facts.folder);
  return interpreters.command(path, await readSource(facts.folder, path), new Set(facts.files.map((file) => file.path)));
}

/** What a script, and the command that runs it, suggest. `given`: globs of what may be edited, where they are known already. */
export async function proposalFor(
  facts: FolderFacts,
  script: string | null,
  run: string | null,
  given: readonly string[] | null,
): Promise<Proposal> {
  const { folder, files } = facts;
  const program = script === null ? [] : await programOf(folder, script, files);
  const configurations = await namedConfigurations(facts, program, run ?? "");
  const texts = [...program, ...configurations].map((source) => source.text);
  const command = run ?? facts.scripts.find((guess) => guess.path === script)?.run ?? "";
  const interpreters = await findInterpreters(folder);
  const known = new Set(files.map((file) => file.path));
  const nodeModules = /\bnode\b/.test(command);
  const ignored = facts.git?.ignored ?? (nodeModules ? ["node_modules/"] : []);
  const { edit, why } = editable(script, program, configurations);
  const isEdited = pathMatcher(given ?? edit);
  const edited = files.map((file) => file.path).filter(isEdited);
  const data = await findData(folder, files, ignored, { texts: [...texts, command], nodeModules, edited });
  return {
    edit,
    editWhy: why,
    metrics: await findMetrics(folder, program),
    mounts: data.mounts,
    usesOutputFolder: program.some((source) => source.text.includes("TRIALIST_OUTPUT")),
    notes: [
      ...(interpreters.environment === null || !command.includes(interpreters.python)
        ? []
        : [`run with ${interpreters.python}: ${interpreters.environment.why}`]),
      ...(await packageNotes(folder, known, interpreters, command)),
      ...(data.unused.length === 0
        ? []
        : [`git ignores ${list(data.unused)}, which no source names: stages do not see it; \`--mount FOLDER\` binds one`]),
    ],
  };
}

const configurationFile = /\.(ya?ml|json|toml|ini|cfg)$/i;
const projectFile =
  /(^|\/)(package(-lock)?\.json|tsconfig[^/]*\.json|pyproject\.toml|poetry\.lock|setup\.cfg|environment\.ya?ml|biome\.json|\.[^/]*|docker-compose\.ya?ml)$/i;

/** Configuration files that the program or its command names. */
async function namedConfigurations(facts: FolderFacts, program: readonly SourceFile[], run: string): Promise<SourceFile[]> {
  const said = [...program.map((source) => source.text), run].join("\n");
  const found: SourceFile[] = [];
  for (const { path, kind, bytes } of facts.files) {
    if (kind !== "file" || bytes > 256 * 1024 || !configurationFile.test(path) || projectFile.test(path)) continue;
    // A result of an earlier run is written, not read.
    if (/(^|\/)(results?|outputs?|runs?|metrics?)(\/|\.)/i.test(path) || !names(said, path)) continue;
    found.push({ path, text: await readSource(facts.folder, path) });
  }
  return found.slice(0, 10);
}

function names(text: string, path: string): boolean {
  const last = basename(path);
  return [path, last].some((name) => [`"${name}"`, `'${name}'`, `/${name}`, ` ${name}`, `=${name}`].some((form) => text.includes(form)));
}

/** What measures or prepares data is left alone: a better number must come from a better program. */
const measuring =
  /(^|[/_.-])(eval|evaluate|evaluation|evaluator|metrics?|scor(e|ing|er)|test|bench|benchmark|data|datasets?|dataloader|prepare|loader)s?([/_.-]|$)/i;

function editable(
  script: string | null,
  program: readonly SourceFile[],
  configurations: readonly SourceFile[],
): { edit: string[]; why: string } {
  if (script === null) return { edit: [], why: "" };
  const imported = program.slice(1).filter(({ path, text }) => text.trim() !== "" && !measuring.test(path));
  const fixed = program.slice(1).filter(({ path }) => measuring.test(path));
  const measures = measuring.test(script) && imported.length > 0;
  const edit = [...(measures ? [] : [script]), ...[...imported, ...configurations].map((source) => source.path)];
  const reasons = [
    measures
      ? `${script} imports them; it measures, and stays as it is`
      : imported.length > 0
        ? "the script and what it imports"
        : "the script",
    configurations.length > 0 ? `${list(configurations.map((source) => source.path))}: named by the script` : "",
    fixed.length > 0 ? `not ${list(fixed.map((source) => source.path))}, which by its name measures or brings data` : "",
  ];
  return { edit, why: reasons.filter((reason) => reason !== "").join("; ") };
}

/** A few names, and how many more. */
export function list(names: readonly string[], most = 5): string {
  const more = names.length > most ? ` and ${names.length - most} more` : "";
  return `${names.slice(0, most).join(", ")}${more}`;
}
