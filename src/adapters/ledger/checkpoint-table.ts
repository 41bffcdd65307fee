import type { Database, Statement } from "better-sqlite3";
import type { Checkpoint } from "../../core/ports/ledger.js";
import type { EventTable } from "./event-table.js";

type Row = { id: number; sequence: number; chain: string };

const kept = 2;

/** Folds of prefixes, the latest two. Every one may be lost: an owner then folds from the start. */
export class CheckpointTable {
  readonly #select: Statement<[string], Row>;
  readonly #state: Statement<[number], string>;

  constructor(
    private readonly db: Database,
    private readonly events: EventTable,
  ) {
    // States are large: only the one that is wanted is read.
    this.#select = db.prepare("SELECT id, sequence, chain FROM checkpoints WHERE fold_version = ? ORDER BY sequence DESC, id DESC");
    this.#state = db.prepare<[number], string>("SELECT state FROM checkpoints WHERE id = ?").pluck();
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
    for (const { id, sequence, chain } of this.#select.all(foldVersion)) {
      if (this.events.record(sequence)?.chain !== chain) continue;
      const state = this.#state.get(id);
      if (state !== undefined) return { sequence, chain, foldVersion, state };
    }
    return null;
  }
}
