import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import SqliteDatabase from "better-sqlite3";
import { openSqliteLedger } from "../src/adapters/ledger/sqlite-ledger.js";
import type { Ledger } from "../src/core/ports/ledger.js";
import { Run } from "../src/research/runner/run.js";
import { diskFolder } from "./ledger-events.js";
import { type BenchResult, judged, median, ms, secondsOf } from "./result.js";
import { Simulation, simulateRun } from "./simulated-trials.js";

const bars = { multiple: 2, growth: 1.2 };
const rounds = 10;
const trialsPerBlock = 20;
const warmUp = 5;
/** Fewest events between two checkpoints of a run. */
const checkpointEvery = 2000;
const young = 50;
const old = 5000;

/**
 * Time of the harness per trial: the core's decisions and folds, what is due, views, documents and answers of roles,
 * measurement files, events and blobs on a SQLite ledger on disk, under rule `any` and the tree organization. Stages and
 * researcher answer from this process, and their time is taken out; the folders that the engine lays out for stages are
 * part of `slots-busy`. The limit: bare better-sqlite3 that afterwards writes the same rows and blobs, in the same
 * transactions, into a copy of the database as it was before. In turns of `trialsPerBlock`, around trial 50 and around
 * trial 5,000; checkpoints, which come once in a while, are timed apart and added.
 */
export async function harnessTrial(parent = diskFolder()): Promise<BenchResult[]> {
  const folder = mkdtempSync(join(parent, "bench-harness-"));
  try {
    const aged = makeLedger(join(folder, "aged"), old);
    const pairs: Pair[] = [];
    const agedSide = Side.open(aged);
    for (let round = 0; round < rounds; round++) {
      const youngSide = Side.open(makeLedger(join(folder, `young-${round}`), young - trialsPerBlock / 2));
      const youngBlock = youngSide.block();
      pairs.push({ young: withCheckpoints(youngBlock, youngSide), old: withCheckpoints(agedSide.block(), agedSide) });
      youngSide.close();
    }
    agedSide.close();
    return rows(pairs);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Pair {
  readonly young: Block;
  readonly old: Block;
}

function withCheckpoints(block: Block, side: Side): Block {
  return { ...block, oursMs: block.oursMs + side.checkpointMsPerTrial() };
}

function rows(pairs: readonly Pair[]): BenchResult[] {
  const of = (age: keyof Pair, pick: (block: Block) => number): number => median(pairs.map((pair) => pick(pair[age])));
  const multiple = (age: keyof Pair): number => of(age, (block) => block.oursMs / block.bareMs);
  const ours = { young: ms(of("young", (block) => block.oursMs)), old: ms(of("old", (block) => block.oursMs)) };
  const bare = { young: ms(of("young", (block) => block.bareMs)), old: ms(of("old", (block) => block.bareMs)) };
  const [transactions, bytes] = [of("old", (block) => block.transactions), of("old", (block) => block.bytes)];
  const shape = `${transactions.toFixed(1)} transactions, ${(bytes / 1024).toFixed(1)} KiB a trial; ${rounds} turns of ${trialsPerBlock} trials`;
  const growth = median(pairs.map((pair) => pair.old.oursMs / pair.young.oursMs));
  return [
    judged(
      {
        name: "harness-per-trial",
        value: Math.max(multiple("young"), multiple("old")),
        unit: "× bare better-sqlite3",
        ours: `${ours.young} at trial ${young}, ${ours.old} at trial ${old}`,
        limit: `${bare.young}, ${bare.old}`,
        note: `${multiple("young").toFixed(2)} at trial ${young}, ${multiple("old").toFixed(2)} at trial ${old}; ${shape}`,
      },
      { atMost: bars.multiple },
      `${ms(of("old", (block) => block.appendMs))} of trialist's time at trial ${old} is in appends, where it does what the bare database does and makes canonical JSON and the chain; the rest is validation, decisions, folds, views, documents, blobs and checkpoints`,
    ),
    judged(
      {
        name: "harness-growth",
        value: growth,
        unit: `× the time at trial ${young}`,
        ours: `${ours.old} at trial ${old}`,
        limit: `${ours.young} at trial ${young}`,
        note: shape,
      },
      { atMost: bars.growth },
    ),
  ];
}

/** Per trial. */
interface Block {
  readonly oursMs: number;
  /** Of `oursMs`: inside the ledger's appends. */
  readonly appendMs: number;
  readonly bareMs: number;
  readonly transactions: number;
  readonly bytes: number;
}

interface Place {
  readonly run: string;
  readonly blobs: string;
}

function makeLedger(folder: string, trials: number): Place {
  const place = { run: join(folder, "run"), blobs: join(folder, "blobs") };
  const ledger = openSqliteLedger(place.run, { mode: "create", blobFolder: place.blobs });
  simulateRun(ledger, trials);
  ledger.close();
  return place;
}

/** A run with the bare database beside it. */
class Side {
  private readonly simulation: Simulation;
  /** Events of every append since the last look: one transaction each. */
  private readonly appended: number[] = [];
  private readonly checkpoints: number[] = [];
  private appendMs = 0;

  private constructor(
    private readonly place: Place,
    private readonly ledger: Ledger,
    private readonly run: Run,
    private readonly bare: SqliteDatabase.Database,
  ) {
    this.simulation = new Simulation(run);
    ledger.subscribe((events) => this.appended.push(events.length));
    const append = ledger.append.bind(ledger);
    ledger.append = (...given) => {
      const start = performance.now();
      try {
        return append(...given);
      } finally {
        this.appendMs += performance.now() - start;
      }
    };
  }

  static open(place: Place): Side {
    const bareFile = join(place.run, "bare.sqlite");
    copyFileSync(join(place.run, "ledger.sqlite"), bareFile);
    const bare = new SqliteDatabase(bareFile);
    bare.pragma("journal_mode = WAL");
    bare.pragma("synchronous = FULL");
    const ledger = openSqliteLedger(place.run, { mode: "own", blobFolder: place.blobs });
    const run = Run.open(ledger, Date.now);
    run.dispatch({ type: "open_span", epoch: run.state.epoch + 1, previousEndedAt: null, drives: true });
    const side = new Side(place, ledger, run, bare);
    side.search(warmUp);
    return side;
  }

  block(): Block {
    const before = { events: this.ledger.head, blobs: this.blobsSince(0).length };
    this.appended.length = 0;
    this.appendMs = 0;
    const oursMs = this.search(trialsPerBlock);
    const { appendMs } = this;
    const transactions = this.transactionsSince(before);
    const bareMs = secondsOf(() => this.write(transactions)) * 1000;
    const bytes = transactions.flatMap((each) => [
      ...each.events.map((row) => row.data.length),
      ...each.blobs.map((row) => row.bytes.byteLength),
    ]);
    return {
      oursMs: oursMs / trialsPerBlock,
      appendMs: appendMs / trialsPerBlock,
      bareMs: bareMs / trialsPerBlock,
      transactions: transactions.length / trialsPerBlock,
      bytes: bytes.reduce((sum, each) => sum + each, 0) / trialsPerBlock,
    };
  }

  /** A checkpoint, in ms, spread over the trials from one to the next. */
  checkpointMsPerTrial(): number {
    const { version, searchTrialsEnded } = this.run.state;
    const eventsBetween = Math.max(checkpointEvery, version / 10);
    return (median(this.checkpoints) * version) / searchTrialsEnded / eventsBetween;
  }

  close(): void {
    this.bare.close();
    this.ledger.close();
  }

  /** Milliseconds of so many more trials. */
  private search(trials: number): number {
    const { simulation } = this;
    simulation.worldMs = 0;
    const searched = secondsOf(() => simulation.search(trials)) * 1000 - simulation.worldMs;
    this.checkpoints.push(secondsOf(() => this.run.checkpoint()) * 1000);
    return searched;
  }

  private transactionsSince(before: { readonly events: number; readonly blobs: number }): Transaction[] {
    const rows = this.bareReader<EventRow>("SELECT * FROM events WHERE sequence > ? ORDER BY sequence", before.events);
    const transactions = this.appended.map((size): Transaction => ({ events: rows.splice(0, size), blobs: [] }));
    let at = 0;
    for (const blob of this.blobsSince(before.blobs)) {
      // A blob that only a manifest names goes with its neighbour.
      const named = transactions.findIndex((each, index) => index >= at && each.events.some((row) => row.data.includes(blob.digest)));
      if (named !== -1) at = named;
      transactions[at]?.blobs.push(blob);
    }
    return transactions;
  }

  private blobsSince(count: number): BlobRow[] {
    return this.bareReader<BlobRow>("SELECT * FROM blobs WHERE rowid > ? ORDER BY rowid", count);
  }

  private bareReader<Row>(sql: string, after: number): Row[] {
    const reader = new SqliteDatabase(join(this.place.run, "ledger.sqlite"), { readonly: true });
    try {
      return reader.prepare<[number], Row>(sql).all(after);
    } finally {
      reader.close();
    }
  }

  private write(transactions: readonly Transaction[]): void {
    const begin = this.bare.prepare("BEGIN IMMEDIATE");
    const commit = this.bare.prepare("COMMIT");
    const insertEvent = this.bare.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)");
    const insertBlob = this.bare.prepare("INSERT INTO blobs VALUES (?, ?)");
    for (const { events, blobs } of transactions) {
      begin.run();
      for (const blob of blobs) insertBlob.run(blob.digest, blob.bytes);
      for (const row of events) insertEvent.run(row.sequence, row.at, row.type, row.version, row.data, row.chain);
      commit.run();
    }
  }
}

interface EventRow {
  readonly sequence: number;
  readonly at: number;
  readonly type: string;
  readonly version: number;
  readonly data: string;
  readonly chain: string;
}

interface BlobRow {
  readonly digest: string;
  readonly bytes: Uint8Array;
}

interface Transaction {
  readonly events: readonly EventRow[];
  readonly blobs: BlobRow[];
}
