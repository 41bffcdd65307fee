import { organizationNamed } from "../organizations/registry.js";
import type { StoredEvent } from "../ports/ledger.js";
import { UnknownRecordError } from "../protocol/errors.js";
import { type EventData, type EventType, parseEvent, type StoredRunEvent } from "../protocol/events.js";
import { callHandlers } from "./evolve/calls.js";
import type { EventHandlers } from "./evolve/handlers.js";
import { runHandlers } from "./evolve/run.js";
import { trialHandlers } from "./evolve/trials.js";
import type { RunState } from "./state.js";

/** Changes with every change of the fold, so that an old checkpoint is left aside. */
export const foldVersion = "1";

const handlers: EventHandlers = { ...runHandlers, ...callHandlers, ...trialHandlers };

/**
 * Folds one event into the state that it owns, and returns it.
 * @throws UnknownRecordError when the event does not follow the last one
 */
export function evolve(state: RunState, event: StoredRunEvent): RunState {
  if (event.sequence !== state.version + 1) {
    throw new UnknownRecordError({ expected: `event ${state.version + 1}`, found: `event ${event.sequence}`, where: "fold of the ledger" });
  }
  const handle = handlers[event.type] as (state: RunState, data: EventData<EventType>, event: StoredRunEvent) => void;
  handle(state, event.data, event);
  state.version = event.sequence;
  state.lastAt = Math.max(state.lastAt, event.at);
  evolveOrganization(state, event);
  return state;
}

function evolveOrganization(state: RunState, event: StoredRunEvent): void {
  const chosen = state.configuration?.organization;
  if (chosen === undefined) return;
  const organization = organizationNamed(chosen.name);
  if (event.type === "run.started") state.organization = organization.initial(organization.configure(chosen.configuration));
  organization.evolve(state.organization, event, state);
}

/** Parses and folds stored events, in order. */
export function replay(state: RunState, events: Iterable<StoredEvent>): RunState {
  for (const event of events) evolve(state, parseEvent(event));
  return state;
}
