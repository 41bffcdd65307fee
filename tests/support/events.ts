import type { EventType, StoredRunEvent } from "../../src/core/protocol/events.js";

/** The events of one type. */
export function of<T extends EventType>(events: readonly StoredRunEvent[], type: T): Extract<StoredRunEvent, { type: T }>[] {
  return events.filter((event): event is Extract<StoredRunEvent, { type: T }> => event.type === type);
}
