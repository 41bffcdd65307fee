import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import SqliteDatabase from "better-sqlite3";
import { openSqliteLedger } from "../src/adapters/ledger/sqlite-ledger.js";
import { canonicalJson } from "../src/core/protocol/canonical.js";
import { diskFolder, eventLike } from "./ledger-events.js";
import { type BenchResult, judged, median, ms, secondsOf } from "./result.js";

const rounds = 10;
const turnsPerRound = 10;
const appendsPerTurn = 25;
const bar = 0.8;

type Append = (index: number) => void;

/**
 * Rate of durable appends, one event a transaction, as a part of what a bare better-sqlite3 loop reaches that inserts the
 * same rows, made beforehand, at the same settings. Interleaved in short turns; median of ten rounds.
 */
export async function ledgerAppend(parent = diskFolder()): Promise<BenchResult[]> {
  const folder = mkdtempSync(join(parent, "bench-append-"));
  const ledger = openSqliteLedger(join(folder, "run"), { mode: "create", blobFolder: join(folder, "blobs") });
  const bare = new SqliteDatabase(join(folder, "bare.sqlite"));
  try {
    const ours: Append = (index) => void ledger.append(index, 1.7e12 + index, [eventLike(index)]);
    const theirs = bareAppend(bare);
    for (let index = 0; index < 100; index++) {
      ours(index);
      theirs(index);
    }
    const turns = Array.from({ length: rounds }, (_, round) => secondsOfBoth(ours, theirs, 100 + round * turnsPerRound * appendsPerTurn));
    const each = (side: "ours" | "theirs"): string =>
      ms((median(turns.map((turn) => turn[side])) * 1000) / (turnsPerRound * appendsPerTurn));
    const row = {
      name: "durable-append",
      value: median(turns.map((turn) => turn.theirs / turn.ours)),
      unit: "of a bare better-sqlite3 loop's rate",
      ours: `${each("ours")} an event`,
      limit: `${each("theirs")} an event`,
      note: `median of ${rounds} rounds in turns, one event a transaction`,
    };
    return [judged(row, { atLeast: bar })];
  } finally {
    ledger.close();
    bare.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function secondsOfBoth(ours: Append, theirs: Append, first: number): { readonly ours: number; readonly theirs: number } {
  let [ourSeconds, theirSeconds] = [0, 0];
  for (let turn = 0; turn < turnsPerRound; turn++) {
    const start = first + turn * appendsPerTurn;
    const run = (append: Append) =>
      secondsOf(() => {
        for (let index = start; index < start + appendsPerTurn; index++) append(index);
      });
    const oursFirst = turn % 2 === 0;
    if (oursFirst) ourSeconds += run(ours);
    theirSeconds += run(theirs);
    if (!oursFirst) ourSeconds += run(ours);
  }
  return { ours: ourSeconds, theirs: theirSeconds };
}

function bareAppend(db: SqliteDatabase.Database): Append {
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec(
    "CREATE TABLE events (sequence INTEGER PRIMARY KEY, at INTEGER NOT NULL, type TEXT NOT NULL, version INTEGER NOT NULL, data TEXT NOT NULL, chain TEXT NOT NULL) STRICT",
  );
  const insert = db.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)");
  const rows = Array.from({ length: 100 + rounds * turnsPerRound * appendsPerTurn }, (_, index) => {
    const { type, version, data } = eventLike(index);
    return [index + 1, 1.7e12 + index, type, version, canonicalJson(data), index.toString(16).padStart(64, "0")] as const;
  });
  return (index) => void insert.run(...(rows[index] ?? []));
}
