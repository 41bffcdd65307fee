import type { StoredEvent } from "../../core/ports/ledger.js";

export type Listener = (events: readonly StoredEvent[]) => void;

/**
 * Tells listeners of appended events, in order. An append made by a listener is told after the present one, and an
 * error thrown by a listener surfaces as an uncaught exception: the append that it heard of did happen.
 */
export class Subscribers {
  readonly #listeners = new Set<{ readonly tell: Listener }>();
  readonly #waiting: (readonly StoredEvent[])[] = [];
  #telling = false;

  get size(): number {
    return this.#listeners.size;
  }

  add(listener: Listener): () => void {
    const entry = { tell: listener };
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  clear(): void {
    this.#listeners.clear();
  }

  publish(events: readonly StoredEvent[]): void {
    if (this.#listeners.size === 0 || events.length === 0) return;
    this.#waiting.push(events);
    if (this.#telling) return;
    this.#telling = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) this.#tellAll(next);
    } finally {
      this.#telling = false;
    }
  }

  #tellAll(events: readonly StoredEvent[]): void {
    for (const { tell } of [...this.#listeners]) {
      try {
        tell(events);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
