import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { scriptPath, scriptText } from "./stub-answers.js";

/** Name of the playbook entry that proposes without a model. */
export const playbookName = "stub";
/** What it runs, in the pack. */
export const playbookCommand = "sh answer.sh";

const contract = `schema: trialist/environment@1
name: trivial
description: Print a higher score.
surface: { editable: [${scriptPath}] }
baseline: baseline/
stages:
  - { name: run, trust: candidate, run: 'python3 ${scriptPath} > "$TRIALIST_OUTPUT/score.txt"', outputs: [score.txt], limits: { wall: 20 s } }
  - { name: measure, trust: evaluator, run: sh measure.sh, limits: { wall: 20 s } }
metrics: [{ name: score, direction: maximize }]
noise: { calibrate: 2, remeasure_every: 0 }
promotion: { rule: any }
playbook: { ${playbookName}: ${playbookCommand} }
`;

const measure = `score=$(sed -n 's/^score: //p' "$TRIALIST_ARTIFACTS/score.txt")
printf '{"metrics":{"score":%s}}' "$score" > "$TRIALIST_MEASUREMENT"
`;

/** Another script for every seed. */
const answer = `printf '{"plan":{"hypothesis":"Attempt %s: let the script print another score."},' "$TRIALIST_SEED"
printf '"files":{"${scriptPath}":"# attempt %s\\\\nprint(\\\\"score: 0.%s\\\\")\\\\n"}}' "$TRIALIST_SEED" "$((TRIALIST_SEED % 899999 + 100000))"
`;

/** Writes the pack: a script that prints a number, and an evaluator that reads it. */
export function writeTrivialEnvironment(pack: string): void {
  const files = { "environment.yaml": contract, "measure.sh": measure, "answer.sh": answer, [`baseline/${scriptPath}`]: scriptText(0) };
  for (const [path, text] of Object.entries(files)) {
    const file = join(pack, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  chmodSync(pack, 0o755);
}
