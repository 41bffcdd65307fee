import type { EventData, EventType, StoredRunEvent } from "../../protocol/events.js";
import type { RunState } from "../state.js";

/** One handler per event type; a missing one does not compile. */
export type EventHandlers = {
  readonly [T in EventType]: (state: RunState, data: EventData<T>, event: StoredRunEvent) => void;
};
