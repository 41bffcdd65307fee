import { decide } from "../../core/harness/decide.js";
import { evolve, foldVersion, replay } from "../../core/harness/evolve.js";
import { initialState, type RunState } from "../../core/harness/state.js";
import type { Ledger } from "../../core/ports/ledger.js";
import type { Command, TimelessCommand } from "../../core/protocol/commands.js";
import { assertShape, currentVersion, type RunEvent, type StoredRunEvent } from "../../core/protocol/events.js";
import type { BlobReference } from "../../core/protocol/ids.js";

/** Now, in milliseconds since 1970. */
export type Clock = () => number;

/** Fewest events between two checkpoints. */
const checkpointEvery = 2000;

/**
 * A run that this process owns: its ledger and the fold of it. Every change goes through `take`: decide and fold; and
 * `commit`: append in one transaction, tell the listeners. Whoever lets something out of this process that rests on
 * what was taken commits first.
 */
export class Run {
  private readonly listeners = new Set<(event: StoredRunEvent) => void>();
  /** Folded and not written yet; all of one time. */
  private pending: { readonly at: number; readonly events: StoredRunEvent[] } | null = null;
  private broken: { readonly error: unknown } | null = null;
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
   * Decides and records, durable on return.
   * @throws RefusedError when the state does not allow it; what was taken before is written all the same
   * @throws errors of the ledger's port; see `commit`
   */
  dispatch(command: TimelessCommand): readonly RunEvent[] {
    try {
      return this.take(command);
    } finally {
      this.commit();
    }
  }

  /**
   * Decides and folds. The events wait for the next `commit` and share their time with those that wait already.
   * @throws RefusedError when the state does not allow it; nothing was taken then
   */
  take(command: TimelessCommand): readonly RunEvent[] {
    this.refuseBroken();
    const at = this.pending?.at ?? this.clock();
    const decision = decide(this.state, { ...command, at } as Command);
    if (decision.events.length === 0) return [];
    decision.events.forEach(assertShape);
    for (const { digest, bytes } of decision.blobs) {
      if (this.ledger.putBlob(bytes) !== digest) throw new RangeError(`a decision names the blob ${digest} and brings another`);
    }
    this.pending ??= { at, events: [] };
    for (const event of decision.events) {
      const complete = { ...event, sequence: this.state.version + 1, at } as StoredRunEvent;
      this.pending.events.push(complete);
      evolve(this.state, complete);
    }
    return decision.events;
  }

  /**
   * Writes what was taken, all of it or nothing, durable on return.
   * @throws errors of the ledger's port; the state is ahead of the ledger then, and the run takes nothing more
   */
  commit(): void {
    this.refuseBroken();
    const { pending } = this;
    if (pending === null) return;
    this.pending = null;
    try {
      this.ledger.append(this.state.version - pending.events.length, pending.at, pending.events.map(versioned));
    } catch (error) {
      this.broken = { error };
      throw error;
    }
    for (const event of pending.events) {
      for (const listener of this.listeners) listener(event);
    }
    this.checkpointWhenDue();
  }

  private refuseBroken(): void {
    if (this.broken !== null) throw this.broken.error;
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
    this.commit();
    if (this.state.version === this.checkpointedAt) return;
    this.ledger.saveCheckpoint({ sequence: this.ledger.head, chain: this.ledger.chain, foldVersion, state: JSON.stringify(this.state) });
    this.checkpointedAt = this.state.version;
  }
}

function versioned(event: RunEvent): { type: string; version: number; data: unknown } {
  return { type: event.type, version: currentVersion(event.type), data: event.data };
}
