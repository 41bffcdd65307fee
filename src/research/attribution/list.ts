import type { RunState, Trial } from "../../core/harness/state.js";
import type { CandidateBlobs } from "./changes.js";
import type { Attribution } from "./document.js";
import type { Units } from "./plan.js";

/** Member of a trial's move that names the changes which its candidate lacks, joined by `+`. */
export const withoutMember = "without";
/** Members of the list run that measures the smallest recipe: the winner, and the baseline that the search began with. */
export const wholeMember = "whole";

/** Members of every move of the list run: what was taken apart, and into what. */
export const winnerMember = "winner";
export const byMember = "by";

/** A list run as it stands: its name, its fold, and where its records are. */
export interface ListRun {
  readonly name: string;
  readonly state: RunState;
  readonly blobs: CandidateBlobs;
}

/** Whether a list run is worked off. */
export function stateOf({ phase }: RunState): Attribution["state"] {
  return phase === "finished" ? "done" : phase === "cancelled" ? "failed" : "measuring";
}

/** Its trials by what their moves say under a member. */
export function trialsBy(state: RunState, member: string): Map<string, Trial> {
  return new Map(
    Object.values(state.trials).flatMap((trial): [string, Trial][] => {
      const name = trial.move[member];
      return typeof name === "string" ? [[name, trial]] : [];
    }),
  );
}

/** What a list run was made to take apart; null for a run that was made for something else. */
export function recordedTask({ trials, queue, configuration }: RunState): { readonly winner: string; readonly by: Units } | null {
  if (configuration?.promotion.rule !== "compare") return null;
  const moves = [...Object.values(trials), ...queue].map(({ move }) => move).filter((move) => withoutMember in move);
  const [winner, by] = [moves[0]?.[winnerMember], moves[0]?.[byMember]];
  return typeof winner === "string" && (by === "step" || by === "hunk") ? { winner, by } : null;
}
