import { RefusedError } from "../../core/protocol/errors.js";
import type { StoredRunEvent } from "../../core/protocol/events.js";

/**
 * Sequence of the last event of the decision that ended a trial: a record that is cut there is one that its run once had.
 * @throws RefusedError for a trial that has no such end
 */
export function endOfTrial(events: readonly StoredRunEvent[], trial: string): number {
  const place = events.findIndex((event) => event.type === "trial.ended" && event.data.trial === trial);
  const ended = events[place];
  if (ended?.type !== "trial.ended" || trial.startsWith("r"))
    throw new RefusedError({
      expected: "a searched trial that has ended, or t0",
      found: trial,
      where: "--at",
      todo: "`trialist show RUN` lists them.",
    });
  if (ended.data.status === "cancelled")
    throw new RefusedError({
      expected: "a trial that came to an end of its own",
      found: `${trial}, which was cancelled together with others`,
      where: "--at",
      todo: "Name the trial before it, or leave --at away: a fork begins with the whole record then.",
    });
  let last = place;
  for (let next = events[last + 1]; next !== undefined && belongsTo(next, trial); next = events[last + 1]) last += 1;
  return events[last]?.sequence ?? ended.sequence;
}

/** What an adjudication appends behind the trial's end. */
function belongsTo(event: StoredRunEvent, trial: string): boolean {
  if (event.type === "leader.changed") return event.data.trial === trial && event.data.cause !== "retraction";
  return event.type === "plan.closed" || (event.type === "run.calibrated" && trial === "t0");
}
