import type { Database, Statement } from "better-sqlite3";
import type { Checkpoint } from "../../core/ports/ledger.js";
import type { EventTable } from "./event-table.js";

type Row = { sequence: number; chain: string; fold_version: string; state: string };

const kept = 2;

/** Folds of prefixes, the latest two. Every one may be lost: an owner then folds from the start. */
export class CheckpointTable {
  readonly #select: Statement<[string], Row>;

  constructor(
    private readonly db: Database,
    private readonly events: EventTable,
  ) {
    this.#select = db.prepare(
      "SELECT sequence, chain, fold_version, state FROM checkpoints WHERE fold_version = ? ORDER BY sequence DESC, id DESC",
    );
  }

  /** Call inside a transaction. */
  save({ sequence, chain, foldVersion, state }: Checkpoint): void {
    this.db
      .prepare("INSERT INTO checkpoints (sequence, chain, fold_version, state) VALUES (?, ?, ?, ?)")
      .run(sequence, chain, foldVersion, state);
    this.db.prepare("DELETE FROM checkpoints WHERE id NOT IN (SELECT id FROM checkpoints ORDER BY id DESC LIMIT ?)").run(kept);
  }

  /** The latest of this fold that lies on the ledger's chain. */
  load(foldVersion: string): Checkpoint | null {
    for (const { sequence, chain, fold_version, state } of this.#select.iterate(foldVersion)) {
      if (this.events.record(sequence)?.chain === chain) return { sequence, chain, foldVersion: fold_version, state };
    }
    return null;
  }
}
