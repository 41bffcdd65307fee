import type { Command } from "../../protocol/commands.js";
import type { RunState } from "../state.js";
import { type Handler, only, refuse } from "./decision.js";

/**
 * Records that blobs may be missing from now on, before anybody removes them; in any phase, since room is needed after a
 * run too. What the state itself rests on is refused, whoever asks.
 */
export const pruneBlobs: Handler<Extract<Command, { type: "prune_blobs" }>> = (state, command) => {
  if (state.phase === "new") throw refuse("a run that has started", "a run that is new", "There is nothing in it to remove.");
  const digests = [...new Set(command.digests)];
  const needed = neededBy(state);
  const refused = digests.find((digest) => needed.has(digest));
  if (refused !== undefined)
    throw refuse("blobs of kept outputs alone", `${refused}, which a candidate, a record or an open question needs`, "Keep it.");
  if (digests.length === 0) return only();
  return only(
    { type: "operator.acted", data: { action: "prune blobs", reason: command.reason, subject: null } },
    { type: "run.blobs_pruned", data: { digests } },
  );
};

function neededBy(state: RunState): Set<string> {
  const needed = new Set<string>();
  const add = (reference: { readonly blob: string } | null): void => void (reference !== null && needed.add(reference.blob));
  for (const trial of Object.values(state.trials)) {
    add(trial.candidate);
    add(trial.records);
    for (const result of trial.results) add(result.records);
    add(trial.failure?.stdout ?? null);
    add(trial.failure?.stderr ?? null);
  }
  for (const { candidate } of state.queue) add(candidate);
  for (const call of Object.values(state.calls)) {
    add(call.view);
    add(call.lastOutput);
  }
  for (const measurement of Object.values(state.measurements))
    for (const stage of Object.values(measurement.endedStages)) {
      add(stage.stdout);
      add(stage.stderr);
    }
  for (const { content } of Object.values(state.knowledge)) add(content);
  return needed;
}
