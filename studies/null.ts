/**
 * Trials of an environment where nothing helps: how many are kept under `confirmed`, beside what `any` keeps?
 *
 *   npm run study:null -- [--trials 200] [--seeds 1] [--write]
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
    seeds: { type: "string", default: "1" },
    folder: { type: "string", default: "." },
    write: { type: "boolean", default: false },
  },
});
const trials = Number(options.trials);
const project = new Project(options.folder);
const host = await openHost();

const seeds = Number(options.seeds);

interface Row {
  readonly seed: number;
  readonly confirmations: number;
  readonly kept: number;
  readonly keptUnderAny: number;
  readonly level: number;
}

async function row(seed: number): Promise<Row> {
  const run = await runOnce(project, host, {
    name: `study-null-${trials}-${seed}`,
    environmentFolder: new URL("../environments/null", import.meta.url).pathname,
    organization: { name: "tree", configuration: {} },
    researcher: "reference",
    budget: { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    promotion: {},
    seed,
    parallel: 2,
    sandbox: "bubblewrap",
  });
  const { state } = run;
  run.close();
  return {
    seed,
    confirmations: Object.values(state.trials).filter((trial) => trial.kind === "search" && trial.confirmation !== null).length,
    kept: state.statuses.keep ?? 0,
    keptUnderAny: state.keptUnderAny,
    level: state.configuration?.promotion.level ?? Number.NaN,
  };
}

const rows: Row[] = [];
for (let seed = 1; seed <= seeds; seed++) rows.push(await row(seed));
const sum = (pick: (each: Row) => number): number => rows.reduce((total, each) => total + pick(each), 0);
const [confirmations, kept] = [sum((each) => each.confirmations), sum((each) => each.kept)];
const level = rows[0]?.level ?? Number.NaN;
const [low, high] = wilson(kept, confirmations);
const text = `# Nothing helps: false keeps

Small-scale: ${seeds} run seeds of ${trials} trials each of \`environments/null\`, whose metric is noise drawn from the seed alone.
Every keep is a false one.

Command: \`npm run study:null -- --trials ${trials} --seeds ${seeds} --write\` · ${cpus().length} × ${cpus()[0]?.model ?? "CPU"}

| run seed | confirmations | false keeps under \`confirmed\` | rate per confirmation, 95 % interval | false keeps under \`any\`, same trials |
|---|---|---|---|---|
${rows.map((each) => `| ${each.seed} | ${each.confirmations} | ${each.kept} | ${percent(each.kept / Math.max(1, each.confirmations))} | ${each.keptUnderAny} |`).join("\n")}
| all | ${confirmations} | ${kept} | ${percent(kept / Math.max(1, confirmations))} [${percent(low)}, ${percent(high)}], stated level ${percent(level)} | ${sum((each) => each.keptUnderAny)} |

Under \`confirmed\` a trial that looks better than the leader is measured again, beside the leader, on seeds that nobody has seen; it is
kept when the interval of the difference excludes zero at the stated level. Under \`any\` every new record of the noise is kept.
The level holds for each confirmation: a run that confirms many times must expect as many false keeps as confirmations × level.
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
