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
  const guarded = new SqliteDatabase(join(folder, "guarded.sqlite"));
  try {
    const ours: Append = (index) => void ledger.append(index, 1.7e12 + index, [eventLike(index)]);
    const theirs = bareAppend(bare);
    const withHead = guardedAppend(guarded);
    for (let index = 0; index < 100; index++) for (const append of [ours, theirs, withHead]) append(index);
    const turns = Array.from({ length: rounds }, (_, round) =>
      secondsOfEach({ ours, theirs, withHead }, 100 + round * turnsPerRound * appendsPerTurn),
    );
    const each = (side: Side): string => ms((median(turns.map((turn) => turn[side])) * 1000) / (turnsPerRound * appendsPerTurn));
    const row = {
      name: "durable-append",
      value: median(turns.map((turn) => turn.theirs / turn.ours)),
      unit: "of a bare better-sqlite3 loop's rate",
      ours: `${each("ours")} an event`,
      limit: `${each("theirs")} an event`,
      note: `median of ${rounds} rounds in turns, one event a transaction`,
    };
    const guardedRate = median(turns.map((turn) => turn.theirs / turn.withHead));
    const why = `an append also moves the head row that guards owner and version (a bare loop that does so reaches ${guardedRate.toFixed(2)} of the bare rate), and makes canonical JSON, the chain and what subscribers are told`;
    return [judged(row, { atLeast: bar }, why)];
  } finally {
    ledger.close();
    bare.close();
    guarded.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

type Side = "ours" | "theirs" | "withHead";

/** In turns; which side begins changes from turn to turn. */
function secondsOfEach(appends: Readonly<Record<Side, Append>>, first: number): Record<Side, number> {
  const seconds = { ours: 0, theirs: 0, withHead: 0 };
  const sides: readonly Side[] = ["ours", "theirs", "withHead"];
  for (let turn = 0; turn < turnsPerRound; turn++) {
    const start = first + turn * appendsPerTurn;
    for (const offset of sides.keys()) {
      const side = sides[(turn + offset) % sides.length] ?? "ours";
      seconds[side] += secondsOf(() => {
        for (let index = start; index < start + appendsPerTurn; index++) appends[side](index);
      });
    }
  }
  return seconds;
}

/** The bare loop with one row more in each transaction: a head that is moved under a condition. */
function guardedAppend(db: SqliteDatabase.Database): Append {
  const insert = bareAppend(db);
  db.exec("CREATE TABLE head (id INTEGER PRIMARY KEY, sequence INTEGER NOT NULL) STRICT; INSERT INTO head VALUES (1, 0)");
  const move = db.prepare("UPDATE head SET sequence = ? WHERE id = 1 AND sequence = ?");
  const both = db.transaction((index: number) => {
    move.run(index + 1, index);
    insert(index);
  });
  return (index) => both(index);
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
