import { surfaceViolations } from "../../core/harness/admission.js";
import { configurationOf, type RunState } from "../../core/harness/state.js";
import { canonicalJson } from "../../core/protocol/canonical.js";
import type { Environment } from "../../core/protocol/environment.js";
import { type CandidateBlobs, type Change, fileSteps, manifestOfTree, stepsOf, type Tree, treeOf } from "./changes.js";
import { hunksOf } from "./hunks.js";
import { leaveOut } from "./leave-out.js";

/** Into what a winner is taken apart: its kept steps, or the hunks of the whole difference. */
export type Units = "step" | "hunk";

/** The winner without one change, or without several that stand on the same lines. */
export interface Ablation {
  readonly changes: readonly string[];
  readonly tree: Tree;
}

/** Why a change cannot be left out alone. */
export interface Entangled {
  /** Later changes that stand on the same lines; with all of these it can be left out, if `together`. */
  readonly with: readonly string[];
  readonly paths: readonly string[];
  readonly together: boolean;
}

export interface AttributionPlan {
  readonly winner: string;
  readonly by: Units;
  /** In the order in which they were made. */
  readonly changes: readonly Change[];
  readonly ablations: readonly Ablation[];
  readonly entangled: ReadonlyMap<string, Entangled>;
  /** Changes of which later ones left nothing. */
  readonly absent: ReadonlySet<string>;
  /** Changes without which the rest is no candidate of this environment, and why. */
  readonly inadmissible: ReadonlyMap<string, string>;
  readonly surface: Environment["surface"];
  readonly winnerTree: Tree;
  readonly baselineTree: Tree;
}

/** What has to be measured to tell which change the winner owes its gain to. The same for the same ledger. */
export function planAttribution(state: RunState, winner: string, by: Units, blobs: CandidateBlobs): AttributionPlan {
  const [baselineTree, winnerTree] = [treeOf(state, "t0", blobs), treeOf(state, winner, blobs)];
  const changes = by === "step" ? stepsOf(state, winner, blobs) : hunksOf(baselineTree, winnerTree);
  const ablations = new Map<string, Ablation>();
  const entangled = new Map<string, Entangled>();
  const absent = new Set<string>();
  const inadmissible = new Map<string, string>();
  const { surface } = configurationOf(state).environment;
  for (const change of changes) {
    const alone = leaveOut(winnerTree, [change]);
    if ("tree" in alone) {
      const problem = surfaceProblem(surface, winnerTree, alone.tree);
      if (sameTree(alone.tree, winnerTree)) absent.add(change.id);
      else if (problem !== null) inadmissible.set(change.id, problem);
      else add(ablations, [change], alone.tree);
      continue;
    }
    const group = smallestGroup(winnerTree, changes, change, alone.conflicts);
    entangled.set(change.id, { with: group.with.map(({ id }) => id), paths: alone.conflicts, together: group.tree !== null });
    if (group.tree !== null && surfaceProblem(surface, winnerTree, group.tree) === null)
      add(ablations, [change, ...group.with], group.tree);
  }
  return { winner, by, changes, ablations: [...ablations.values()], entangled, absent, inadmissible, surface, winnerTree, baselineTree };
}

function add(ablations: Map<string, Ablation>, changes: readonly Change[], tree: Tree): void {
  const ids = changes.map(({ id }) => id);
  ablations.set(nameOf(ids), { changes: ids, tree });
}

/** What a trial of the list run is known by: `t3`, `t3+t5`. */
export function nameOf(changes: readonly string[]): string {
  return changes.join("+");
}

/** The fewest later changes with which one can be left out: one of those that touch the same file, else all of them. */
function smallestGroup(
  winner: Tree,
  changes: readonly Change[],
  change: Change,
  paths: readonly string[],
): { readonly with: readonly Change[]; readonly tree: Tree | null } {
  const later = changes.slice(changes.indexOf(change) + 1).filter(({ files }) => files.some(({ path }) => paths.includes(path)));
  for (const others of [...later.map((each) => [each]), later]) {
    const left = leaveOut(winner, [change, ...others]);
    if ("tree" in left) return { with: others, tree: left.tree };
  }
  return { with: later, tree: null };
}

/** Parts of candidates that were admitted may be none together; null: they are. */
export function surfaceProblem(surface: Environment["surface"], from: Tree, to: Tree): string | null {
  const edited = fileSteps(from, to).map(({ path }) => path);
  const [problem] = surfaceViolations(surface, edited, manifestOfTree(to));
  return problem === undefined ? null : `${problem.message}${problem.path === null ? "" : ` (${problem.path})`}`;
}

export function sameTree(a: Tree, b: Tree): boolean {
  return canonicalJson(manifestOfTree(a)) === canonicalJson(manifestOfTree(b));
}
