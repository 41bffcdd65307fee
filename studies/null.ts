/**
 * Trials of an environment where nothing helps: how many are kept under `confirmed`, beside what `any` keeps?
 *
 *   npm run study:null -- [--trials 200] [--write]
 */
import { writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { openHost } from "../src/app/environments.js";
import { Project } from "../src/app/project.js";
import { runOnce } from "./run-once.js";

const { values: options } = parseArgs({
  options: {
    trials: { type: "string", default: "200" },
    folder: { type: "string", default: "." },
    write: { type: "boolean", default: false },
  },
});
const trials = Number(options.trials);
const project = new Project(options.folder);
const host = await openHost();

const run = await runOnce(project, host, {
  name: `study-null-${trials}`,
  environmentFolder: new URL("../environments/null", import.meta.url).pathname,
  organization: { name: "tree", configuration: {} },
  researcher: "reference",
  budget: { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null },
  promotion: {},
  seed: 1,
  parallel: 2,
  sandbox: "bubblewrap",
});
const { state } = run;
run.close();
const confirmations = Object.values(state.trials).filter((trial) => trial.kind === "search" && trial.confirmation !== null).length;
const kept = state.statuses.keep ?? 0;
const level = state.configuration?.promotion.level ?? Number.NaN;
const [low, high] = wilson(kept, confirmations);
const text = `# Nothing helps: false keeps

Small-scale: one run of ${trials} trials of \`environments/null\`, whose metric is noise drawn from the seed alone. Every keep is a false one.

Command: \`npm run study:null -- --trials ${trials} --write\` · ${cpus().length} × ${cpus()[0]?.model ?? "CPU"}

| rule | trials | confirmations | false keeps | rate per confirmation, 95 % interval | stated level |
|---|---|---|---|---|---|
| confirmed | ${trials} | ${confirmations} | ${kept} | ${percent(kept / Math.max(1, confirmations))} [${percent(low)}, ${percent(high)}] | ${percent(level)} |
| any (same trials) | ${trials} | none | ${state.keptUnderAny} | – | – |

Under \`confirmed\` a trial that looks better than the leader is measured again, beside the leader, on seeds that nobody has seen; it is
kept when the interval of the difference excludes zero at the stated level. Under \`any\` every new record of the noise is kept.
`;
process.stdout.write(text);
if (options.write) await writeFile(new URL("../docs/studies/null.md", import.meta.url), text);

/** Wilson's score interval for a proportion (Wilson 1927). */
function wilson(successes: number, n: number): [number, number] {
  if (n === 0) return [0, 1];
  const z = 1.96;
  const p = successes / n;
  const center = (p + z ** 2 / (2 * n)) / (1 + z ** 2 / n);
  const half = (z / (1 + z ** 2 / n)) * Math.sqrt((p * (1 - p)) / n + z ** 2 / (4 * n ** 2));
  return [Math.max(0, center - half), Math.min(1, center + half)];
}

function percent(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}
