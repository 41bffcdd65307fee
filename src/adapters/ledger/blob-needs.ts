import SqliteDatabase, { type Database, type Statement } from "better-sqlite3";
import type { Digest } from "../../core/protocol/canonical.js";
import { UnknownRecordError } from "../../core/protocol/errors.js";
import { BlobFiles } from "./blob-files.js";
import { filesOfManifest, prunedIn } from "./blob-references.js";
import { BlobStore } from "./blob-store.js";
import { openForReading } from "./database.js";
import { EventTable } from "./event-table.js";
import { ledgerPath } from "./run-files.js";

/** Outputs of a run that were kept and are not of the best any more. */
export interface Overtaken {
  readonly digest: Digest;
  readonly bytes: number;
}

export interface ScannedRun {
  readonly environmentDigest: string | null;
  readonly over: boolean;
  /** Outputs that may be pruned now: with `keep_outputs: best`, of trials that ended and are neither the best, nor a keep, nor the baseline. */
  readonly overtaken: readonly Overtaken[];
  /** Small blobs that the ledger itself still holds although it says that they were pruned. */
  readonly prunedInline: readonly Overtaken[];
}

const blobPattern = /"blob":"([0-9a-f]{64})"(?:,"bytes":\d+(,"manifest":true)?)?/g;

/**
 * Which blobs the ledgers of a project need. Everything lies in a private temporary database, and a ledger is read event by
 * event, so that memory stays flat however many trials there are. What cannot be told counts as needed.
 */
export class BlobNeeds {
  private readonly db: Database = new SqliteDatabase("");
  private readonly isNeeded: Statement<[string], number>;

  constructor(private readonly blobFolder: string) {
    this.db.pragma("journal_mode = OFF");
    this.db.exec(`
      CREATE TABLE needed (digest TEXT PRIMARY KEY) WITHOUT ROWID;
      CREATE TABLE named (digest TEXT PRIMARY KEY, manifest INTEGER) WITHOUT ROWID;
      CREATE TABLE outputs (digest TEXT, bytes INTEGER, trial TEXT, PRIMARY KEY (digest, trial)) WITHOUT ROWID;
      CREATE TABLE subjects (measurement TEXT PRIMARY KEY, trial TEXT) WITHOUT ROWID;
      CREATE TABLE ended (trial TEXT PRIMARY KEY, kept INTEGER) WITHOUT ROWID;
      CREATE TABLE pruned (digest TEXT PRIMARY KEY) WITHOUT ROWID;
    `);
    this.isNeeded = this.db.prepare<[string], number>("SELECT 1 FROM needed WHERE digest = ?").pluck();
  }

  needs(digest: Digest): boolean {
    return this.isNeeded.get(digest) !== undefined;
  }

  /** Counts a blob as needed whatever the ledgers say. */
  keep(digest: Digest): void {
    this.db.prepare("INSERT OR IGNORE INTO needed VALUES (?)").run(digest);
  }

  /** Takes in a run's ledger, whole or not at all. @throws errors of the ledger when a record does not check out */
  scan(runFolder: string): ScannedRun {
    const ledger = openForReading(runFolder);
    try {
      return this.db.transaction(() => new Scan(this.db, ledger, ledgerPath(runFolder), this.blobFolder).run())();
    } finally {
      ledger.close();
    }
  }

  close(): void {
    this.db.close();
  }
}

class Scan {
  private keepsBest = false;
  private leader: string | null = null;
  private environmentDigest: string | null = null;
  private over = false;
  private readonly statements;

  constructor(
    private readonly db: Database,
    private readonly ledger: Database,
    private readonly path: string,
    private readonly blobFolder: string,
  ) {
    this.statements = {
      name: db.prepare<[string, number]>(
        "INSERT INTO named VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET manifest = max(manifest, excluded.manifest)",
      ),
      output: db.prepare<[string, number, string]>("INSERT OR IGNORE INTO outputs VALUES (?, ?, ?)"),
      subject: db.prepare<[string, string]>("INSERT OR REPLACE INTO subjects VALUES (?, ?)"),
      subjectOf: db.prepare<[string], string>("SELECT trial FROM subjects WHERE measurement = ?").pluck(),
      end: db.prepare<[string, number]>("INSERT OR REPLACE INTO ended VALUES (?, ?)"),
      unkeep: db.prepare<[string]>("UPDATE ended SET kept = 0 WHERE trial = ?"),
      prune: db.prepare<[string]>("INSERT OR IGNORE INTO pruned VALUES (?)"),
      renamed: db.prepare<[string]>("DELETE FROM pruned WHERE digest = ?"),
      dropName: db.prepare<[string]>("DELETE FROM named WHERE digest = ?"),
      dropOutput: db.prepare<[string]>("DELETE FROM outputs WHERE digest = ?"),
    };
  }

  run(): ScannedRun {
    for (const table of ["named", "outputs", "subjects", "ended", "pruned"]) this.db.exec(`DELETE FROM ${table}`);
    for (const record of new EventTable(this.ledger, this.path).checked(0)) this.take(record.type, record.data);
    this.addFilesOfManifests();
    const overtaken = this.keepsBest ? this.overtaken() : [];
    const gone = new Set(overtaken.map((each) => each.digest));
    this.db.exec("INSERT OR IGNORE INTO needed SELECT digest FROM named");
    const need = this.db.prepare<[string]>("INSERT OR IGNORE INTO needed VALUES (?)");
    for (const digest of this.db.prepare<[], string>("SELECT DISTINCT digest FROM outputs").pluck().all())
      if (!gone.has(digest)) need.run(digest);
    return { environmentDigest: this.environmentDigest, over: this.over, overtaken, prunedInline: this.prunedInline() };
  }

  private take(type: string, data: string): void {
    switch (type) {
      case "run.blobs_pruned":
        return this.takePruned(data);
      case "run.started":
        this.takeStart(data);
        break;
      case "run.finished":
      case "run.cancelled":
        this.over = true;
        break;
      case "run.extended":
      case "run.forked":
        this.over = false;
        break;
      case "measurement.requested": {
        const { measurement, subject } = parsed<{ measurement: string; subject: string }>(data);
        this.statements.subject.run(measurement, subject);
        break;
      }
      case "attempt.ended":
        if (this.keepsBest && data.includes('"outputs":[{')) return this.takeOutputs(data);
        break;
      case "leader.changed":
        this.leader = parsed<{ trial: string }>(data).trial;
        break;
      case "trial.ended": {
        const { trial, status } = parsed<{ trial: string; status: string }>(data);
        this.statements.end.run(trial, status === "keep" ? 1 : 0);
        break;
      }
      case "trial.retracted":
        this.statements.unkeep.run(parsed<{ trial: string }>(data).trial);
    }
    this.name(data);
  }

  private takeStart(data: string): void {
    const { configuration } = parsed<{ configuration: { environmentDigest: string; environment: { keepOutputs: string } } }>(data);
    this.environmentDigest = configuration.environmentDigest;
    this.keepsBest = configuration.environment.keepOutputs === "best";
  }

  private name(data: string): void {
    if (!data.includes('"blob":"')) return;
    for (const [, digest = "", manifest] of data.matchAll(blobPattern)) {
      this.statements.name.run(digest, manifest === undefined ? 0 : 1);
      // Named again after it was pruned: it is there again, and needed.
      this.statements.renamed.run(digest);
    }
  }

  private takeOutputs(data: string): void {
    const ended = parsed<{ measurement: string; result: { outputs: { content: { blob: string; bytes: number } }[] } }>(data);
    const trial = this.statements.subjectOf.get(ended.measurement);
    if (trial === undefined)
      throw new UnknownRecordError({ expected: `the request of ${ended.measurement}`, found: "none", where: this.path });
    for (const { content } of ended.result.outputs) {
      this.statements.output.run(content.blob, content.bytes, trial);
      this.statements.renamed.run(content.blob);
    }
    this.name(JSON.stringify({ ...ended, result: { ...ended.result, outputs: [] } }));
  }

  private takePruned(data: string): void {
    for (const digest of prunedIn(data)) {
      this.statements.prune.run(digest);
      this.statements.dropName.run(digest);
      this.statements.dropOutput.run(digest);
    }
  }

  /** The files of every candidate are blobs too. */
  private addFilesOfManifests(): void {
    const blobs = new BlobStore(this.ledger, new BlobFiles(this.blobFolder), this.path);
    for (const digest of this.db.prepare<[], string>("SELECT digest FROM named WHERE manifest = 1").pluck().all()) {
      const files = filesOfManifest(blobs.get(digest));
      if (files === null)
        throw new UnknownRecordError({ expected: "a candidate's manifest", found: `something else in blob ${digest}`, where: this.path });
      for (const file of files) this.statements.name.run(file.digest, 0);
    }
  }

  private overtaken(): Overtaken[] {
    return this.db
      .prepare<[string], Overtaken>(
        `SELECT digest, max(bytes) AS bytes FROM outputs LEFT JOIN ended USING (trial) GROUP BY digest
         HAVING sum(ended.trial IS NULL OR kept = 1 OR outputs.trial IN ('t0', ?)) = 0 AND digest NOT IN (SELECT digest FROM named)`,
      )
      .all(this.leader ?? "t0");
  }

  private prunedInline(): Overtaken[] {
    const size = this.ledger.prepare<[string], number>("SELECT length(bytes) FROM blobs WHERE digest = ?").pluck();
    return this.db
      .prepare<[], string>("SELECT digest FROM pruned")
      .pluck()
      .all()
      .flatMap((digest) => {
        const bytes = size.get(digest);
        return bytes === undefined ? [] : [{ digest, bytes }];
      });
  }
}

function parsed<T>(data: string): T {
  return JSON.parse(data) as T;
}
