import { decide } from "../../core/harness/decide.js";
import { evolve, foldVersion, replay } from "../../core/harness/evolve.js";
import { initialState, type RunState } from "../../core/harness/state.js";
import type { Ledger } from "../../core/ports/ledger.js";
import type { Command } from "../../core/protocol/commands.js";
import { currentVersion, type RunEvent, type StoredRunEvent } from "../../core/protocol/events.js";
import type { BlobReference } from "../../core/protocol/ids.js";

/** Now, in milliseconds since 1970. */
export type Clock = () => number;

type WithoutTime<C> = C extends unknown ? Omit<C, "at"> : never;
export type TimelessCommand = WithoutTime<Command>;

/** Fewest events between two checkpoints. */
const checkpointEvery = 2000;

/**
 * A run that this process owns: its ledger and the fold of it. Every change goes through `dispatch`: decide, append,
 * fold, tell the listeners.
 */
export class Run {
  private readonly listeners = new Set<(event: StoredRunEvent) => void>();
  private checkpointedAt: number;

  private constructor(
    readonly ledger: Ledger,
    readonly state: RunState,
    private readonly clock: Clock,
  ) {
    this.checkpointedAt = state.version;
  }

  /** Folds the ledger, from its checkpoint where it has a good one. */
  static open(ledger: Ledger, clock: Clock): Run {
    const checkpoint = ledger.loadCheckpoint(foldVersion);
    const state = checkpoint === null ? initialState() : (JSON.parse(checkpoint.state) as RunState);
    replay(state, ledger.read(state.version));
    return new Run(ledger, state, clock);
  }

  now(): number {
    return this.clock();
  }

  /**
   * @throws RefusedError when the state does not allow it
   * @throws errors of the ledger's port; then nothing was appended and the state is as before
   */
  dispatch(command: TimelessCommand): void {
    const at = this.clock();
    const decision = decide(this.state, { ...command, at } as Command);
    if (decision.events.length === 0) return;
    const stored = this.ledger.append(this.state.version, at, decision.events.map(versioned), decision.blobs);
    decision.events.forEach((event, index) => {
      const place = stored[index];
      if (place === undefined) throw new RangeError("the ledger stored fewer events than it was given");
      const complete = { ...event, sequence: place.sequence, at: place.at } as StoredRunEvent;
      evolve(this.state, complete);
      for (const listener of this.listeners) listener(complete);
    });
    this.checkpointWhenDue();
  }

  putBlob(bytes: Uint8Array): BlobReference {
    return { blob: this.ledger.putBlob(bytes), bytes: bytes.byteLength };
  }

  onEvent(listener: (event: StoredRunEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Saves the fold. Spaced by a tenth of the run's length, so that its cost per event does not grow with age. */
  private checkpointWhenDue(): void {
    const since = this.state.version - this.checkpointedAt;
    if (since >= checkpointEvery && since * 10 >= this.state.version) this.checkpoint();
  }

  checkpoint(): void {
    if (this.state.version === this.checkpointedAt) return;
    this.ledger.saveCheckpoint({ sequence: this.ledger.head, chain: this.ledger.chain, foldVersion, state: JSON.stringify(this.state) });
    this.checkpointedAt = this.state.version;
  }
}

function versioned(event: RunEvent): { type: string; version: number; data: unknown } {
  return { type: event.type, version: currentVersion(event.type), data: event.data };
}
