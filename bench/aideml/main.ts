import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { diskFolder } from "../ledger-events.js";
import { writeResults } from "../results-file.js";
import { runAideml } from "./aideml-side.js";
import { type BareStarts, bareStarts } from "./bare-starts.js";
import { barsOf, driftOf, type Row, ratioOf, rowsOf } from "./comparison.js";
import { StubServer } from "./stub-server.js";
import { runTrialist } from "./trialist-side.js";
import { apartTable, barLine, ownTable, quietness, section } from "./words.js";

const usage = `npm run bench:aideml -- [options]

  --steps N  steps of each program (default 500; the table has steps 20, 100, 200 and 500)
  --json     print { steps: [{ step, trialist, aideml, library, ratio }], bars: [{ name, value, unit, bar, met }], drift } and nothing else
  --write    write the section of bench/RESULTS.md`;

const leastSteps = 20;
/** Where trialist was killed, its supervisor ends by itself after a while, and needs its folder until then. */
const supervisorEndsMs = 3000;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      steps: { type: "string", default: "500" },
      json: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return say(usage, 0);
  const steps = Number(values.steps);
  if (!Number.isInteger(steps) || steps < leastSteps) return say(`--steps expects a whole number from ${leastSteps}`, 2);
  const { rows, starts } = await measure(steps);
  const bars = barsOf(rows, steps);
  if (values.json) {
    const judgements = bars.map(({ name, value, unit, bar, met }) => ({ name, value, unit, bar, met }));
    say(JSON.stringify({ steps: rows.map((row) => ({ ...row, ratio: ratioOf(row) })), bars: judgements, drift: driftOf(rows) }), 0);
  } else {
    say([ownTable(rows), apartTable(rows), bars.map(barLine).join("\n"), quietness(rows)].join("\n\n"), 0);
  }
  if (values.write) writeResults({ peer: section(rows, bars, starts, `npm run bench:aideml -- ${process.argv.slice(2).join(" ")}`) });
  return bars.every((bar) => bar.met) ? 0 : 1;
}

function say(text: string, code: number): number {
  console.log(text);
  return code;
}

interface Measured {
  readonly rows: readonly Row[];
  readonly starts: BareStarts;
}

async function measure(steps: number): Promise<Measured> {
  const folder = mkdtempSync(join(diskFolder(), "bench-aideml-"));
  // The sandbox's user passes through it.
  chmodSync(folder, 0o755);
  const server = await StubServer.start();
  try {
    const starts = await bareStarts(folder);
    const trialist = await timed("trialist", () => runTrialist(folder, server, steps));
    const aideml = await timed("aideml, the command", () => runAideml(folder, server, steps, "command"));
    const library = await timed("aideml, the library", () => runAideml(folder, server, steps, "library"));
    return { rows: rowsOf({ trialist, aideml, library }, steps), starts };
  } finally {
    await server.stop();
    await sleep(supervisorEndsMs);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  const result = await work();
  process.stderr.write(`  (${name} took ${((performance.now() - begun) / 1000).toFixed(0)} s)\n`);
  return result;
}

process.exitCode = await main();
