import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import SqliteDatabase from "better-sqlite3";
import { openSqliteLedger } from "../src/adapters/ledger/sqlite-ledger.js";
import type { Ledger, NewEvent } from "../src/core/ports/ledger.js";
import { type BenchResult, diskFolder, eventLike, median, secondsOf } from "./ledger-events.js";

const rounds = 7;
const bar = 3;

/** A ledger on disk, for benchmarks. */
export interface BenchLedger {
  readonly runFolder: string;
  readonly blobFolder: string;
  remove(): void;
}

/** Makes a run of `count` events: those of `eventAt`, or such as trials leave. */
export function makeLedger(count = 100_000, eventAt: (index: number) => NewEvent = eventLike, parent = diskFolder()): BenchLedger {
  const folder = mkdtempSync(join(parent, "bench-open-"));
  const [runFolder, blobFolder] = [join(folder, "run"), join(folder, "blobs")];
  const ledger = openSqliteLedger(runFolder, { mode: "create", blobFolder });
  for (let head = 0; head < count; head = ledger.head) {
    const size = Math.min(5000, count - head);
    ledger.append(
      head,
      1.7e12 + head,
      Array.from({ length: size }, (_, offset) => eventAt(head + offset)),
    );
  }
  ledger.close();
  return { runFolder, blobFolder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The limit that reading is held against: every event's data through better-sqlite3 and JSON.parse, nothing else. */
export function bareRead(runFolder: string): void {
  const db = new SqliteDatabase(join(runFolder, "ledger.sqlite"), { readonly: true });
  for (const data of db.prepare<[], string>("SELECT data FROM events ORDER BY sequence").pluck().iterate()) JSON.parse(data);
  db.close();
}

/** Opens a run for reading and lets `use` work with its ledger: a fold, a checkpoint. */
export function withLedger(made: BenchLedger, use: (ledger: Ledger) => void): void {
  const ledger = openSqliteLedger(made.runFolder, { mode: "read", blobFolder: made.blobFolder });
  try {
    use(ledger);
  } finally {
    ledger.close();
  }
}

/** Median over interleaved rounds of the time of `work` as a multiple of a bare read. */
export function multipleOfBareRead(made: BenchLedger, work: () => void): number {
  const ratios = Array.from({ length: rounds }, () => {
    const bare = secondsOf(() => bareRead(made.runFolder));
    return secondsOf(work) / bare;
  });
  return median(ratios);
}

/** Reading 100,000 events with the chain checked, as a multiple of a bare read; and opening without reading. */
export async function ledgerOpen(parent = diskFolder()): Promise<BenchResult[]> {
  const made = makeLedger(100_000, eventLike, parent);
  try {
    const readAll = (): void =>
      withLedger(made, (ledger) => {
        let last = 0;
        for (const event of ledger.read()) last = event.sequence;
        if (last !== ledger.head) throw new Error(`read ${last} of ${ledger.head} events`);
      });
    const value = multipleOfBareRead(made, readAll);
    const opening = multipleOfBareRead(made, () => withLedger(made, (ledger) => void ledger.loadCheckpoint("none")));
    return [
      {
        name: "read 100,000 events with the chain checked, of a bare read and JSON.parse",
        value,
        unit: "×",
        bar: `≤ ${bar}`,
        met: value <= bar,
      },
      {
        name: "open a ledger of 100,000 events, of a bare read and JSON.parse",
        value: opening,
        unit: "×",
        bar: "≤ 0.05",
        met: opening <= 0.05,
      },
    ];
  } finally {
    made.remove();
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  console.log(JSON.stringify(await ledgerOpen(process.argv[2] ?? diskFolder())));
