import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openSqliteLedger } from "../src/adapters/ledger/sqlite-ledger.js";
import { foldVersion } from "../src/core/harness/evolve.js";
import { Run } from "../src/research/runner/run.js";
import { diskFolder } from "./ledger-events.js";
import { type BenchResult, judged, median, ms } from "./result.js";
import { simulateRun } from "./simulated-trials.js";

const trials = 10_000;
const leastEvents = 100_000;
const rounds = 7;
const killedRounds = 3;
const bars = { checkpoint: 0.5, memoryMiB: 300, replay: 6 };

interface Opened {
  readonly events: number;
  readonly trials: number;
  readonly ms: number;
  readonly peakMiB: number;
}

/**
 * Opening a run of 10,000 trials, against a bare read and JSON.parse of its events. Each way in a fresh process of the
 * built package, one after the other in turns. `open-checkpoint` is what an owner leaves that comes to its end: a checkpoint
 * at the head. Beside it, in words, the same run as a kill left it, with the last checkpoint that the run's own rule made.
 */
export async function runOpen(): Promise<BenchResult[]> {
  const folder = mkdtempSync(join(diskFolder(), "bench-run-"));
  const [runFolder, blobFolder] = [join(folder, "run"), join(folder, "blobs")];
  try {
    const ledger = openSqliteLedger(runFolder, { mode: "create", blobFolder });
    simulateRun(ledger, trials);
    const behind = ledger.head - (ledger.loadCheckpoint(foldVersion)?.sequence ?? 0);
    ledger.close();
    const open = (way: string): Opened => {
      const program = fileURLToPath(new URL("./open-process.mjs", import.meta.url));
      return JSON.parse(execFileSync(process.execPath, [program, way, runFolder, blobFolder], { encoding: "utf8" })) as Opened;
    };
    const killed = Array.from({ length: killedRounds }, () => open("checkpoint"));
    endWell(runFolder, blobFolder);
    const turns = Array.from({ length: rounds }, () => ({ bare: open("bare"), checkpoint: open("checkpoint"), replay: open("replay") }));
    return rows(turns, `after a kill, ${behind} events behind: ${ms(median(killed.map((each) => each.ms)))}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What an owner does last. */
function endWell(runFolder: string, blobFolder: string): void {
  const ledger = openSqliteLedger(runFolder, { mode: "own", blobFolder });
  const run = Run.open(ledger, Date.now);
  run.dispatch({ type: "open_span", epoch: run.state.epoch + 1, previousEndedAt: null, drives: true });
  run.checkpoint();
  ledger.close();
}

function rows(turns: readonly { bare: Opened; checkpoint: Opened; replay: Opened }[], killed: string): BenchResult[] {
  const events = turns[0]?.bare.events ?? 0;
  if (events < leastEvents) throw new Error(`the run has ${events} events, ${leastEvents} were wanted`);
  const time = (way: "bare" | "checkpoint" | "replay"): string => ms(median(turns.map((turn) => turn[way].ms)));
  const multiple = (way: "checkpoint" | "replay"): number => median(turns.map((turn) => turn[way].ms / turn.bare.ms));
  const memory = (way: "checkpoint" | "replay"): number => Math.max(...turns.map((turn) => turn[way].peakMiB));
  const note = `${trials} trials, ${events} events; medians of ${rounds} processes each, in turns`;
  return [
    judged(
      {
        name: "open-checkpoint",
        value: multiple("checkpoint"),
        unit: "× bare read and JSON.parse",
        ours: time("checkpoint"),
        limit: time("bare"),
        note: `${note}; ${killed}`,
      },
      { atMost: bars.checkpoint },
    ),
    judged(
      {
        name: "open-checkpoint-memory",
        value: memory("checkpoint"),
        unit: "MiB",
        ours: `${memory("checkpoint").toFixed(0)} MiB at most`,
        limit: "of the whole process",
        note,
      },
      { atMost: bars.memoryMiB },
    ),
    judged(
      {
        name: "open-replay",
        value: multiple("replay"),
        unit: "× bare read and JSON.parse",
        ours: time("replay"),
        limit: time("bare"),
        note: `${note}; ${memory("replay").toFixed(0)} MiB at most`,
      },
      { atMost: bars.replay },
    ),
  ];
}
