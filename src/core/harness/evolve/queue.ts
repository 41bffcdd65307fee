import type { RunState } from "../state.js";
import { numberOf } from "./calls.js";
import type { EventHandlers } from "./handlers.js";

/** Candidates that wait for their admission. */
export const queueHandlers = {
  "queue.added": (state, data) => {
    state.counters.queue = numberOf(data.entry);
    const { entry: id, candidate, base, hypothesis, submitter, move } = data;
    state.queue.push({ id, candidate, base, hypothesis, submitter, move });
  },
  "queue.removed": (state, data) => leaveQueue(state, data.entry),
  "queue.moved": (state, data) => {
    const entry = state.queue.find(({ id }) => id === data.entry);
    if (entry === undefined) return;
    leaveQueue(state, data.entry);
    const place = data.before === null ? -1 : state.queue.findIndex(({ id }) => id === data.before);
    state.queue.splice(place === -1 ? state.queue.length : place, 0, entry);
  },
} satisfies Partial<EventHandlers>;

export function leaveQueue(state: RunState, id: string): void {
  state.queue = state.queue.filter((entry) => entry.id !== id);
}
