import type { Command, QueuedCandidate } from "../../protocol/commands.js";
import type { RunEvent } from "../../protocol/events.js";
import { type QueueEntry, type RunState, type Trial, trialNamed } from "../state.js";
import { acted, refuseOver } from "./acts.js";
import { candidateViolations } from "./candidates.js";
import { type Handler, only, refuse } from "./decision.js";
import { closePlan, trialEnded } from "./trial-end.js";

type Of<T extends Command["type"]> = Extract<Command, { type: T }>;

/** A candidate of the operator's: by the same rules of the surface as everybody's, and with an admission of its own. */
export const enqueue: Handler<Of<"enqueue">> = (state, command) => {
  refuseOver(state);
  if (state.resumeTo === "finishing")
    throw refuse(
      "a run that still admits trials",
      "a run that is finishing",
      "Start a new one with `--warm-start`, or with the candidate in its baseline.",
    );
  const base = trialNamed(state, command.base);
  if (base === null || base.retracted) throw refuse("a base trial of this run that stands", command.base);
  if (command.before !== null) waiting(state, command.before);
  const [violation] = candidateViolations(state, command);
  if (violation !== undefined)
    throw refuse(
      "a candidate that this run admits",
      `${violation.message}${violation.path === null ? "" : ` (${JSON.stringify(violation.path)})`}`,
    );
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

/** A trial that was admitted and of which nothing runs: it ends before it is measured any further. What was measured stays on record. */
export const cancelTrial: Handler<Of<"cancel_trial">> = (state, command) => {
  refuseOver(state);
  const trial = openSearch(state, command.trial);
  const running = Object.values(state.measurements).find((each) => each.trial === trial.id && each.running);
  if (running !== undefined)
    throw refuse(
      "a trial of which nothing runs",
      `${trial.id}, whose ${running.id} is being measured`,
      `Let it end, then \`trialist retract RUN ${trial.id} --reason …\`; \`trialist hold RUN ${trial.id} --reason …\` stops what it still waits for.`,
    );
  if (trial.pending === 0)
    throw refuse(
      "a trial that waits for a measurement",
      `${trial.id}, which is being judged`,
      `\`trialist retract RUN ${trial.id} --reason …\` marks it as invalid afterwards.`,
    );
  return only(
    acted("cancel_trial", command.reason, trial.id),
    trialEnded({ trial: trial.id, status: "cancelled", reason: command.reason, bestAtEnd: state.leader?.trial ?? null }),
    ...closePlan(state, trial.id, "cancelled"),
  );
};

function openSearch(state: RunState, id: string): Trial {
  const trial = trialNamed(state, id);
  if (trial === null || trial.kind !== "search")
    throw refuse("a searched trial of this run, such as t3", JSON.stringify(id), "`trialist queue RUN` lists what waits.");
  if (trial.phase === "ended")
    throw refuse(
      "a trial that has not ended",
      `${id}, which is ${trial.status}`,
      `\`trialist retract RUN ${id} --reason …\` marks an ended one as invalid.`,
    );
  return trial;
}

export function queueAdded(entry: string, { candidate, base, hypothesis, submitter, move }: QueuedCandidate): RunEvent {
  return { type: "queue.added", data: { entry, candidate, base, hypothesis, submitter, move: { ...move } } };
}

function waiting(state: RunState, id: string): QueueEntry {
  const entry = state.queue.find((each) => each.id === id);
  if (entry === undefined) throw refuse("an entry that waits in the queue", JSON.stringify(id), "`trialist queue RUN` lists them.");
  return entry;
}
