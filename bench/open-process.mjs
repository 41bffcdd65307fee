// One way of opening a run, in a process of its own, from the built package: what it takes, and the most memory it held.
// node bench/open-process.mjs checkpoint|replay|bare RUN_FOLDER BLOB_FOLDER
import { readFileSync } from "node:fs";
import { join } from "node:path";
import SqliteDatabase from "better-sqlite3";
import { openSqliteLedger } from "../dist/adapters/ledger/sqlite-ledger.js";
import { due } from "../dist/core/harness/due.js";
import { replay } from "../dist/core/harness/evolve.js";
import { initialState } from "../dist/core/harness/state.js";
import { Run } from "../dist/research/runner/run.js";

const ways = {
  /** The owner's: the fold's checkpoint, what came after it with all checks, and what is due now. */
  checkpoint(runFolder, blobFolder) {
    const ledger = openSqliteLedger(runFolder, { mode: "own", blobFolder });
    const run = Run.open(ledger, Date.now);
    if (due(run.state, run.now()).length === 0) throw new Error("nothing is due in a run that is not over");
    const { version, searchTrialsEnded } = run.state;
    ledger.close();
    return { events: version, trials: searchTrialsEnded };
  },
  /** From the first event: the chain, every event's shape, the whole fold. */
  replay(runFolder, blobFolder) {
    const ledger = openSqliteLedger(runFolder, { mode: "read", blobFolder });
    const { version, searchTrialsEnded } = replay(initialState(), ledger.read());
    ledger.close();
    return { events: version, trials: searchTrialsEnded };
  },
  /** The limit: better-sqlite3 and JSON.parse, nothing else. */
  bare(runFolder) {
    const db = new SqliteDatabase(join(runFolder, "ledger.sqlite"), { readonly: true });
    let events = 0;
    for (const data of db.prepare("SELECT data FROM events ORDER BY sequence").pluck().iterate()) {
      JSON.parse(data);
      events += 1;
    }
    db.close();
    return { events, trials: 0 };
  },
};

const [way, runFolder, blobFolder] = process.argv.slice(2);
const start = performance.now();
const found = ways[way](runFolder, blobFolder);
const elapsedMs = performance.now() - start;
// Not `resourceUsage().maxRSS`, in which a process starts with what its parent held.
const [, peakKiB] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
process.stdout.write(JSON.stringify({ ...found, ms: elapsedMs, peakMiB: Number(peakKiB) / 1024 }));
