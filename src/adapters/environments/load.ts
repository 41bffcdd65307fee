import { readFile, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Environment } from "../../core/protocol/environment.js";
import { Checks } from "./checks.js";
import { type ContractForm, contract } from "./contract.js";
import { problemsOfIssue, withoutUnknownKeys } from "./contract-problems.js";
import { checkEnvironment } from "./environment-checks.js";
import { notesOnMounts } from "./mount-digest.js";
import { candidateFiles, contractFile, type PackFile, type PackLayout, readLayout, type SurfaceFile } from "./pack-layout.js";
import { EnvironmentInvalidError, type Problem } from "./problems.js";
import { resolveEnvironment } from "./resolve.js";
import { readYaml, type YamlSource } from "./yaml-source.js";

export type { SurfaceFile } from "./pack-layout.js";

/** A valid environment as it lies in its folder, not yet frozen. */
export interface LoadedEnvironment {
  readonly folder: string;
  readonly environment: Environment;
  /** Every file that is frozen, by path relative to the folder; data and the contract itself are frozen apart. */
  readonly files: readonly PackFile[];
  /** Files of the baseline candidate: path inside the surface, and path inside the folder. */
  readonly baseline: readonly SurfaceFile[];
  readonly references: readonly { readonly name: string; readonly files: readonly SurfaceFile[] }[];
  /** Whether the environment lies in the folder that it studies, so that workspaces hold the context too. */
  readonly ownFolder: boolean;
  /** What a workspace holds beside the candidate; empty for a pack with a baseline folder of its own. */
  readonly context: readonly PackFile[];
  /** What a person should know and need not mend. */
  readonly notes: readonly string[];
}

const contractMaxBytes = 2 ** 20;

/**
 * Loads and checks an environment. `text` stands for a contract that is not written yet.
 * @throws EnvironmentInvalidError with all its problems
 */
export async function loadEnvironment(given: string, text?: string): Promise<LoadedEnvironment> {
  const folder = await realpath(given).catch(() => null);
  const written = text ?? (folder === null ? null : await readContract(folder));
  if (folder === null || written === null) {
    throw new EnvironmentInvalidError([
      {
        file: join(given, contractFile),
        line: null,
        column: null,
        what: "there is no environment here",
        expected: `a file ${contractFile}`,
        found: folder === null ? "no such folder" : "a folder without it",
        todo: "name the folder of an environment, or make one here with `trialist init`",
      },
    ]);
  }
  const source = readYaml(join(folder, contractFile), written);
  const problems: Problem[] = [...source.problems];
  const form = problems.length > 0 ? null : readForm(source, problems);
  if (form === null) throw new EnvironmentInvalidError(problems);
  const layout = await readLayout(folder, form);
  const checks = new Checks(form, layout, source);
  await checkEnvironment(checks);
  problems.push(...checks.problems);
  if (problems.length > 0) throw new EnvironmentInvalidError(inOrder(problems));
  return assemble(form, layout);
}

async function assemble(form: ContractForm, layout: PackLayout): Promise<LoadedEnvironment> {
  const environment = await resolveEnvironment(form, layout);
  return {
    folder: layout.folder,
    environment,
    files: [...layout.files.values()],
    baseline: candidateFiles(layout, form, form.baseline).matching,
    references: environment.references.map(({ name, path }) => ({ name, files: candidateFiles(layout, form, path).matching })),
    ownFolder: layout.own,
    context: layout.context,
    notes: [
      ...layout.secrets.map((path) => `${path} looks like a secret and is not shown to candidates`),
      ...notesOnMounts(environment.mounts),
    ],
  };
}

async function readContract(folder: string): Promise<string | null> {
  const path = join(folder, contractFile);
  const facts = await stat(path).catch(() => null);
  if (facts === null) return null;
  if (!facts.isFile() || facts.size > contractMaxBytes) {
    throw new EnvironmentInvalidError([
      {
        file: path,
        line: null,
        column: null,
        what: `${contractFile} cannot be read`,
        expected: "a text file of at most 1 MiB",
        found: facts.isFile() ? `${facts.size} bytes` : "no regular file",
        todo: "put the contract in its place",
      },
    ]);
  }
  return readFile(path, "utf8");
}

/** Reads the contract's form. Unknown keys are put aside, so that what is wrong besides them is found too. */
function readForm(source: YamlSource, problems: Problem[]): ContractForm | null {
  const first = contract.safeParse(source.value);
  if (first.success) return first.data;
  problems.push(...first.error.issues.flatMap((issue) => problemsOfIssue(source, source.value, issue)));
  const second = contract.safeParse(withoutUnknownKeys(source.value, first.error.issues));
  return second.success ? second.data : null;
}

function inOrder(problems: readonly Problem[]): Problem[] {
  return [...problems].sort((a, b) => (a.file === b.file ? (a.line ?? 0) - (b.line ?? 0) : a.file < b.file ? -1 : 1));
}
