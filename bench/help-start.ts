import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type BenchResult, judged, median, ms, secondsOf } from "./result.js";

const rounds = 25;
const bar = { times: 1.5, plusMs: 100 };
const program = fileURLToPath(new URL("../dist/interfaces/cli/main.js", import.meta.url));

/** `trialist --help` from the built package, against the start and end of bare node, in turns. */
export async function helpStart(): Promise<BenchResult[]> {
  const run = (args: readonly string[]): number =>
    secondsOf(() => void execFileSync(process.execPath, [...args], { stdio: "ignore" })) * 1000;
  const turns = Array.from({ length: rounds + 1 }, () => ({ bare: run(["-e", "0"]), help: run([program, "--help"]) })).slice(1);
  const bare = median(turns.map((turn) => turn.bare));
  const help = median(turns.map((turn) => turn.help));
  const allowed = bare * bar.times + bar.plusMs;
  const row = {
    name: "help-start",
    value: help / allowed,
    unit: `of ${bar.times} × bare node plus ${bar.plusMs} ms`,
    ours: ms(help),
    limit: `${ms(allowed)} (bare node ${ms(bare)})`,
    note: `medians of ${rounds} starts in turns`,
  };
  return [judged(row, { atMost: 1 })];
}
