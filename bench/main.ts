import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { bigRepository } from "./big-repository.js";
import { firstBaseline } from "./first-baseline.js";
import { gc } from "./gc.js";
import { harnessTrial } from "./harness-trial.js";
import { helpStart } from "./help-start.js";
import { ledgerAppend } from "./ledger-append.js";
import { promptGrowth } from "./prompt-growth.js";
import { replayRate } from "./replay-rate.js";
import { type BenchResult, figure } from "./result.js";
import { circumstances, writeResults } from "./results-file.js";
import { roleCallOverhead } from "./role-call-overhead.js";
import { runOpen } from "./run-open.js";
import { sandboxStart } from "./sandbox-start.js";
import { slotsBusy } from "./slots-busy.js";

const usage = `npm run bench -- [options]

  --only NAME  only the rows whose name begins so; may be given several times
  --full       200 trials for slots-busy instead of 40
  --json       print [{ name, value, unit, bar, met }] and nothing else
  --write      write the table to bench/RESULTS.md`;

interface Bench {
  /** Names of its rows. */
  readonly rows: readonly string[];
  readonly run: (full: boolean) => Promise<BenchResult[]>;
}

const benches: readonly Bench[] = [
  { rows: ["harness-per-trial", "harness-growth"], run: () => harnessTrial() },
  { rows: ["slots-busy-sleep", "slots-busy-cpu"], run: slotsBusy },
  { rows: ["sandbox-start"], run: sandboxStart },
  { rows: ["open-checkpoint", "open-checkpoint-memory", "open-replay"], run: runOpen },
  { rows: ["durable-append"], run: () => ledgerAppend() },
  { rows: ["role-call-researcher", "role-call-runner"], run: roleCallOverhead },
  { rows: ["prompt-growth-bytes", "prompt-growth-time"], run: promptGrowth },
  { rows: ["replay-rate"], run: replayRate },
  { rows: ["help-start"], run: helpStart },
  { rows: ["big-repository-start", "big-repository-disk", "big-repository-freeze", "big-repository-again"], run: bigRepository },
  { rows: ["first-baseline"], run: firstBaseline },
  { rows: ["gc-10000", "gc-10000-memory"], run: gc },
];

const options = {
  only: { type: "string", multiple: true },
  full: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  write: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} satisfies NonNullable<ParseArgsConfig["options"]>;

async function main(): Promise<number> {
  const { values } = parseArgs({ options });
  if (values.help) return say(usage, 0);
  const { only } = values;
  const isWanted = (name: string): boolean => only === undefined || only.some((begin) => name.startsWith(begin));
  const wanted = benches.filter((bench) => bench.rows.some(isWanted));
  if (wanted.length === 0)
    return say(`No row begins with ${only?.join(" or ")}. Rows: ${benches.flatMap((bench) => bench.rows).join(", ")}`, 2);
  build();
  const results: BenchResult[] = [];
  for (const bench of wanted) {
    const begun = performance.now();
    const rows = (await bench.run(values.full)).filter((row) => isWanted(row.name));
    results.push(...rows);
    if (!values.json) for (const row of rows) console.log(inWords(row));
    process.stderr.write(`  (${bench.rows[0]} took ${((performance.now() - begun) / 1000).toFixed(0)} s)\n`);
  }
  if (values.json) console.log(JSON.stringify(results.map(({ name, value, unit, bar, met }) => ({ name, value, unit, bar, met }))));
  else console.log(`\n${summary(results)}`);
  if (values.write) writeResults({ limits: document(results) });
  return results.every((row) => row.met) ? 0 : 1;
}

function say(text: string, code: number): number {
  console.log(text);
  return code;
}

/** Two of the benchmarks measure the built package; its compiler speaks on standard error. */
function build(): void {
  const script = fileURLToPath(new URL("../scripts/build.mjs", import.meta.url));
  const { status } = spawnSync(process.execPath, [script], { stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new Error("the package does not build; the compiler's words are above");
}

function inWords(row: BenchResult): string {
  return `${row.met ? "met    " : "NOT MET"}  ${row.name.padEnd(23)} ${figure(row.value)} ${row.unit} (bar ${row.bar})\n         trialist ${row.ours} · limit ${row.limit}\n         ${row.note}`;
}

function summary(results: readonly BenchResult[]): string {
  const missed = results.filter((row) => !row.met);
  if (missed.length === 0) return `All ${results.length} bars are met.`;
  return `${missed.length} of ${results.length} bars are not met: ${missed.map((row) => `${row.name} is ${figure(row.value)}, the bar is ${row.bar}`).join("; ")}.`;
}

function document(results: readonly BenchResult[]): string {
  const lines = results.map(
    (row) =>
      `| ${row.name} | ${figure(row.value)} ${row.unit} | ${row.bar} | ${row.met ? "yes" : "**no**"} | ${row.ours} | ${row.limit} | ${row.note} |`,
  );
  return `# Benchmark results

Each row is a ratio against a limit that was measured in the same run, in turns with it. What is measured and how is said
at the head of each file in this folder.

${circumstances(`npm run bench -- ${process.argv.slice(2).join(" ")}`)}

| what | value | bar | met | trialist | limit | how |
|---|---|---|---|---|---|---|
${lines.join("\n")}

${summary(results)}
`;
}

process.exitCode = await main();
