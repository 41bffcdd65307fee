/**
 * Over five run seeds with a fixed number of trials: does the reference researcher's confirmed best beat LightGBM at its
 * defaults, by records paired in-loop, and does the held-out split agree? The random-move control stands beside it.
 *
 *   npm run study:flchain -- [--seeds 5] [--trials 12] [--write]
 */
import { writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { openHost } from "../src/app/environments.js";
import { heldoutLook } from "../src/app/heldout.js";
import type { InspectedRun } from "../src/app/inspect.js";
import { Project } from "../src/app/project.js";
import { trialOf } from "../src/core/harness/state.js";
import type { RecordSet } from "../src/core/protocol/measurement.js";
import type { Verdict } from "../src/core/protocol/verdict.js";
import { pairedVerdict } from "../src/core/statistics/verdict.js";
import { runOnce } from "./run-once.js";

const { values: options } = parseArgs({
  options: {
    seeds: { type: "string", default: "5" },
    trials: { type: "string", default: "12" },
    folder: { type: "string", default: "." },
    write: { type: "boolean", default: false },
  },
});
const [seeds, trials] = [Number(options.seeds), Number(options.trials)];
const metric = "log_loss";
const project = new Project(options.folder);
const host = await openHost();

interface Row {
  readonly researcher: string;
  readonly seed: number;
  readonly best: string;
  readonly value: number;
  readonly verdict: Verdict;
  readonly crashed: number;
  readonly heldoutGain: number;
}

const rows: Row[] = [];
for (let seed = 1; seed <= seeds; seed++) {
  for (const researcher of ["reference", "random"]) rows.push(await row(researcher, seed));
}
const text = table(rows);
process.stdout.write(text);
if (options.write) await writeFile(new URL("../docs/studies/flchain.md", import.meta.url), text);

async function row(researcher: string, seed: number): Promise<Row> {
  const run = await runOnce(project, host, {
    name: `study-flchain-${researcher}-${seed}-${trials}`,
    environmentFolder: new URL("../environments/flchain", import.meta.url).pathname,
    organization: { name: "tree", configuration: {} },
    researcher,
    budget: { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    promotion: {},
    seed,
    parallel: 2,
    sandbox: "bubblewrap",
  });
  try {
    const best = run.state.leader?.trial ?? "t0";
    const heldout = async (trial: string): Promise<number> =>
      (await heldoutLook(host, run, trial, "the study's one look per frozen winner and reference", () => undefined)).heldout?.[metric] ??
      Number.NaN;
    const made: Row = {
      researcher,
      seed,
      best,
      value: lossOf(run, best),
      verdict: againstReference(run, best),
      crashed: run.state.statuses.crashed ?? 0,
      heldoutGain: (await heldout("r1")) - (await heldout(best)),
    };
    process.stderr.write(`${researcher} ${seed}: ${best} ${made.value.toFixed(4)} ${made.verdict.result}\n`);
    return made;
  } finally {
    run.close();
  }
}

function lossOf(run: InspectedRun, trial: string): number {
  const { estimate, values } = trialOf(run.state, trial);
  return estimate?.[metric] ?? values?.[metric] ?? Number.NaN;
}

/** The confirmed best against the reference row, record by record. Its first measurement is left out where there are confirmations. */
function againstReference(run: InspectedRun, best: string): Verdict {
  const trial = trialOf(run.state, best);
  const confirmation = trial.results.find((result) => result.reason === "confirmation");
  const mine = confirmation?.records ?? trial.records;
  const theirs = trialOf(run.state, "r1").records;
  if (mine === null || theirs === null) throw new RangeError("flchain's measurements carry per-record results");
  const read = (digest: string): RecordSet => JSON.parse(new TextDecoder().decode(run.ledger.blob(digest))) as RecordSet;
  const side = (records: RecordSet): { value: number; records: RecordSet } => ({
    value: records.values.reduce((sum, each) => sum + each, 0) / records.values.length,
    records,
  });
  return pairedVerdict([{ seed: 0, candidate: side(read(mine.blob)), leader: side(read(theirs.blob)) }], "minimize", 0.05, {
    deterministic: true,
  });
}

function table(all: readonly Row[]): string {
  const lines = all.map(
    (each) =>
      `| ${each.researcher} | ${each.seed} | ${each.best} | ${each.value.toFixed(4)} | ${signed(each.verdict.gain)} [${signed(each.verdict.lower)}, ${signed(each.verdict.upper)}] | ${each.verdict.result} | ${signed(each.heldoutGain)} | ${each.crashed} |`,
  );
  const summary = ["reference", "random"].map((researcher) => {
    const own = all.filter((each) => each.researcher === researcher);
    const beaten = own.filter((each) => each.verdict.result === "improved");
    const agree = beaten.filter((each) => each.heldoutGain > 0).length;
    return `- ${researcher}: beats LightGBM's defaults in ${beaten.length} of ${own.length} runs; held-out agrees in sign in ${agree} of these ${beaten.length}`;
  });
  return `# The reference researcher on flchain

Small-scale: ${seeds} run seeds, ${trials} trials each, tree search with the greedy policy and the environment's own promotion rule.
Gain over LightGBM at its defaults in log loss (positive is better), paired by the ${"in-loop"} records, one-sided bounds at 0.05;
the recipe's own seed noise is not in these bounds. Held-out gain: one look each at the winner and at LightGBM.

Command: \`npm run study:flchain -- --seeds ${seeds} --trials ${trials} --write\` · ${cpus().length} × ${cpus()[0]?.model ?? "CPU"}

| researcher | seed | best | log loss | gain over LightGBM [lower, upper] | verdict | held-out gain | crashed |
|---|---|---|---|---|---|---|---|
${lines.join("\n")}

${summary.join("\n")}
`;
}

function signed(value: number | null): string {
  return value === null ? "unknown" : `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(4)}`;
}
