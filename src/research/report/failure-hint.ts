import type { RunState, Trial } from "../../core/harness/state.js";
import { networkHintOf } from "../../core/protocol/network-hint.js";
import { decode, kept, type ReadBlob } from "./evidence.js";

/** What the output of a trial's failed stage suggests; null when it suggests nothing, or the sandbox was off and there was a network. */
export function failureHint(state: RunState, trial: Trial | undefined, blob: ReadBlob | undefined): string | null {
  if (trial?.failure == null || blob === undefined || state.configuration?.sandbox === "none") return null;
  const { stdout, stderr } = trial.failure;
  for (const stream of [stderr, stdout]) {
    const content = kept(blob, stream.blob);
    const hint = content === null ? null : networkHintOf(decode(content));
    if (hint !== null) return hint;
  }
  return null;
}

/** What the failures of a run suggest: of its baseline first, then of the newest trials of each group. */
export function runHint(
  state: RunState,
  groups: readonly { readonly trials: readonly string[] }[],
  blob: ReadBlob | undefined,
): string | null {
  for (const id of ["t0", ...groups.flatMap((group) => group.trials.slice(-1))]) {
    const hint = failureHint(state, state.trials[id], blob);
    if (hint !== null) return `${id}: ${hint}`;
  }
  return null;
}
