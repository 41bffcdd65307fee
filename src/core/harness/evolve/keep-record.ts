import type { RunState, Trial } from "../state.js";

/** A searched trial that said something about its candidate has ended. */
export function recordKeep({ keepRecord }: RunState, trial: Trial): void {
  keepRecord.trials += 1;
  trial.place = keepRecord.trials;
  if (trial.status !== "keep") return;
  keepRecord.keeps += 1;
  keepRecord.keptPlaces += trial.place;
}

/** A keep that was none: its trial counts as one without. */
export function unrecordKeep({ keepRecord }: RunState, { status, place }: Trial): void {
  if (status !== "keep" || place === null) return;
  keepRecord.keeps -= 1;
  keepRecord.keptPlaces -= place;
}
