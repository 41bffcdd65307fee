import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { Cache } from "../../src/adapters/environments/cache.js";
import { type LoadedEnvironment, loadEnvironment } from "../../src/adapters/environments/load.js";
import { EnvironmentInvalidError, type Problem } from "../../src/adapters/environments/problems.js";

/** A folder that every user can reach, since stages may run as another one, and that vanishes with the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await realpath(await mkdtemp("/tmp/trialist-environment-"));
  await chmod(folder, 0o755);
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export async function temporaryCache(): Promise<Cache> {
  return Cache.open({ TRIALIST_CACHE: join(await temporaryFolder(), "cache") });
}

/** Writes files by their relative path. */
export async function fill(folder: string, files: Readonly<Record<string, string>>): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

/** A small valid pack with an evaluator. */
export const packFiles: Readonly<Record<string, string>> = {
  "environment.yaml": `schema: trialist/environment@1
name: small
description: description.md
knowledge: [knowledge/*.md]
surface:
  editable: [solution.sh]
  max_bytes: 1 KiB
baseline: baseline/
references: { other: references/other }
stages:
  - { name: preflight, run: sh -n solution.sh, limits: { wall: 10 s } }
  - { name: train, run: sh solution.sh, outputs: [answer.txt], limits: { wall: 1 min, memory: 64 MiB, cpus: 2 } }
  - { name: measure, trust: evaluator, run: sh evaluate.sh }
metrics:
  - { name: score, direction: maximize }
  - { name: seconds, direction: minimize, from: { wall: train } }
gates:
  - { metric: score, at_least: 0.5 }
  - { artifact: answer.txt, at_most: 16 MB }
playbook: { reference: sh playbook/propose.sh }
`,
  "description.md": "Write a good answer.\n",
  "knowledge/prior.md": "Answers are numbers.\n",
  "baseline/solution.sh": 'echo 1 > "$TRIALIST_OUTPUT/answer.txt"\n',
  "references/other/solution.sh": 'echo 2 > "$TRIALIST_OUTPUT/answer.txt"\n',
  "evaluate.sh": "true\n",
  "playbook/propose.sh": "true\n",
};

/** The small pack with changes: a text, or null for no such file. */
export async function makePack(changes: Readonly<Record<string, string | null>> = {}): Promise<string> {
  const files = Object.fromEntries(
    Object.entries({ ...packFiles, ...changes }).filter((entry): entry is [string, string] => entry[1] !== null),
  );
  return fill(await temporaryFolder(), files);
}

/** The small pack's contract with one part replaced; a part that is not there is a mistake of the test. */
export function contractWith(...replacements: readonly (readonly [from: string, to: string])[]): string {
  let text = packFiles["environment.yaml"] ?? "";
  for (const [from, to] of replacements) {
    if (!text.includes(from)) throw new RangeError(`the contract does not hold ${from}`);
    text = text.replace(from, to);
  }
  return text;
}

/** The problems of a folder that must not load. */
export async function problemsOf(folder: string): Promise<readonly Problem[]> {
  const loaded = await loadEnvironment(folder).then(
    (environment): LoadedEnvironment => environment,
    (error: unknown) => error,
  );
  if (loaded instanceof EnvironmentInvalidError) return loaded.problems;
  throw loaded instanceof Error ? loaded : new RangeError("the environment was expected to be refused; it was loaded");
}
