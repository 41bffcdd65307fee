import { countedValue } from "../../core/harness/trial-values.js";
import type { Tree } from "./changes.js";
import type { AttributedChange, Gain, SmallestSummary } from "./document.js";
import { leaveOut } from "./leave-out.js";
import { type ListRun, stateOf, trialsBy, wholeMember } from "./list.js";
import { measuredOf } from "./measured.js";
import { type AttributionPlan, sameTree, surfaceProblem } from "./plan.js";

/** The winner without all that is neutral or harmful; null where nothing is, or where these cannot be taken out together. */
export function smallestTree(
  plan: AttributionPlan,
  changes: readonly Pick<AttributedChange, "change" | "class">[],
): { readonly leavesOut: readonly string[]; readonly tree: Tree | null } {
  const leavesOut = changes.filter((each) => each.class === "neutral" || each.class === "harmful").map(({ change }) => change);
  const left = leaveOut(
    plan.winnerTree,
    plan.changes.filter(({ id }) => leavesOut.includes(id)),
  );
  const isCandidate = leavesOut.length > 0 && "tree" in left && surfaceProblem(plan.surface, plan.winnerTree, left.tree) === null;
  return { leavesOut, tree: isCandidate ? left.tree : null };
}

/** What leaving all of it out at once comes to, measured anew: what chose these changes does not count for it. */
export function smallestOf(
  plan: AttributionPlan,
  { margin, changes, list }: { readonly margin: number; readonly changes: readonly AttributedChange[]; readonly list: ListRun },
  smallest: ListRun | null,
): SmallestSummary {
  const { leavesOut, tree } = smallestTree(plan, changes);
  const nothing: Omit<SmallestSummary, "state"> = {
    run: null,
    leavesOut: [...leavesOut],
    isBaseline: tree !== null && sameTree(tree, plan.baselineTree),
    value: null,
    overWinner: null,
    overBaseline: null,
    keepsTheGain: null,
    beatsTheBaseline: null,
    note: "",
  };
  if (stateOf(list.state) !== "done") return { ...nothing, state: "waiting" };
  if (leavesOut.length === 0) return { ...nothing, state: "none", note: "no change could be left out: none is neutral or harmful" };
  if (tree === null) return { ...nothing, state: "none", note: "what could be left out cannot be taken out together" };
  if (smallest === null) return { ...nothing, state: "waiting" };
  return { ...nothing, ...measuredSmallest(smallest, margin, nothing.isBaseline) };
}

function measuredSmallest(
  { name, state, blobs }: ListRun,
  margin: number,
  isBaseline: boolean,
): Pick<SmallestSummary, "run" | "state" | "value" | "overWinner" | "overBaseline" | "keepsTheGain" | "beatsTheBaseline" | "note"> {
  const trials = trialsBy(state, wholeMember);
  const over = (which: string): Gain | null => {
    const measured = measuredOf(state, trials.get(which), blobs);
    return measured.kind === "compared" ? measured.gain : null;
  };
  const [overWinner, overBaseline] = [over("winner"), isBaseline ? null : over("baseline")];
  const { t0: recipe } = state.trials;
  const phase = stateOf(state);
  const isDone = phase === "done";
  return {
    run: name,
    state: phase,
    value: recipe === undefined || state.noise === null ? null : countedValue(state, recipe),
    overWinner,
    overBaseline,
    keepsTheGain: isDone ? beyond(overWinner, -margin) : null,
    beatsTheBaseline: isDone && !isBaseline ? better(overBaseline) : null,
    note: phase === "failed" ? state.reason : "",
  };
}

/** Whether a gain is at least this, as sure as its interval is. */
function beyond(gain: Gain | null, least: number): "yes" | "no" | "undecided" {
  if (gain === null || gain.lower === null || gain.upper === null) return "undecided";
  return gain.lower >= least ? "yes" : gain.upper < least ? "no" : "undecided";
}

function better(gain: Gain | null): "yes" | "no" | "undecided" {
  if (gain === null || gain.lower === null || gain.upper === null) return "undecided";
  return gain.lower > 0 ? "yes" : gain.upper <= 0 ? "no" : "undecided";
}
