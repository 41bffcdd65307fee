import type { Command, QueuedCandidate } from "../../protocol/commands.js";
import type { RunEvent } from "../../protocol/events.js";
import { type QueueEntry, type RunState, trialNamed } from "../state.js";
import { acted, refuseOver } from "./acts.js";
import { candidateViolations } from "./candidates.js";
import { type Handler, only, refuse } from "./decision.js";

type Of<T extends Command["type"]> = Extract<Command, { type: T }>;

/** A candidate of the operator's: by the same rules of the surface as everybody's, and with an admission of its own. */
export const enqueue: Handler<Of<"enqueue">> = (state, command) => {
  refuseOver(state);
  const base = trialNamed(state, command.base);
  if (base === null || base.retracted) throw refuse("a base trial of this run that stands", command.base);
  if (command.before !== null) waiting(state, command.before);
  const [violation] = candidateViolations(state, command);
  if (violation !== undefined)
    throw refuse("a candidate that this run admits", `${violation.message}${violation.path === null ? "" : ` (${violation.path})`}`);
  const entry = `q${state.counters.queue + 1}`;
  const events: RunEvent[] = [acted("enqueue", command.reason, entry), queueAdded(entry, command)];
  if (command.before !== null) events.push({ type: "queue.moved", data: { entry, before: command.before } });
  return only(...events);
};

export const dequeue: Handler<Of<"dequeue">> = (state, command) => {
  const { id } = waiting(state, command.entry);
  return only(acted("dequeue", command.reason, id), { type: "queue.removed", data: { entry: id, reason: command.reason } });
};

export const requeue: Handler<Of<"requeue">> = (state, command) => {
  const { id } = waiting(state, command.entry);
  if (command.before !== null) waiting(state, command.before);
  if (command.before === id) throw refuse("another entry to stand in front of", id);
  return only(acted("requeue", command.reason, id), { type: "queue.moved", data: { entry: id, before: command.before } });
};

export function queueAdded(entry: string, { candidate, base, hypothesis, submitter, move }: QueuedCandidate): RunEvent {
  return { type: "queue.added", data: { entry, candidate, base, hypothesis, submitter, move: { ...move } } };
}

function waiting(state: RunState, id: string): QueueEntry {
  const entry = state.queue.find((each) => each.id === id);
  if (entry === undefined) throw refuse("an entry that waits in the queue", id, "`trialist queue RUN` lists them.");
  return entry;
}
