import { compareValues } from "../../protocol/measurement.js";
import type { StoredRunEvent } from "../../protocol/events.js";
import { statusClasses, type TrialStatus } from "../../protocol/status.js";
import { configurationOf, type RunState, trialOf } from "../../harness/state.js";
import type { TreeConfiguration } from "./configuration.js";

/**
 * What the tree's policies know, folded from events. A node is an admitted search trial that ended, less excluded ones;
 * a refused proposal is no node. Plain JSON; every event costs the same at any age, except a retraction.
 */
export interface TreeFold {
  readonly configuration: TreeConfiguration;
  /** Decisions made so far: the index of the next draw. */
  decisions: number;
  /** Drafts that are nodes or may become one: open calls, open trials, ended ones. */
  drafts: number;
  nodes: Record<string, TreeNode>;
  /** Buggy leaves that may be debugged, in arbitrary order, and where each one stands. */
  debuggable: string[];
  places: Record<string, number>;
  /** The best good node by raw value. */
  best: string | null;
  /** Open call → its stage and base: what to give back if it brings no trial. */
  calls: Record<string, { stage: string; base: string }>;
}

export interface TreeNode {
  stage: string;
  base: string | null;
  /** Consecutive debug edges that end here; 0 off a debug edge. */
  debugDepth: number;
  buggy: boolean;
  /** Open or ended children: a leaf has none. */
  children: number;
}

/** Statuses of a node that a debug step may repair. A missed gate is a valid non-improvement, a cheat is no bug. */
const buggy: ReadonlySet<TrialStatus> = new Set(["preflight_failed", "inadmissible", "crashed", "no_result", "timed_out", "over_budget", "over_size"]);

export function initialFold(configuration: TreeConfiguration): TreeFold {
  return { configuration, decisions: 0, drafts: 0, nodes: {}, debuggable: [], places: {}, best: null, calls: {} };
}

export function evolveFold(fold: TreeFold, event: StoredRunEvent, state: RunState): void {
  switch (event.type) {
    case "call.requested":
      fold.decisions += 1;
      fold.calls[event.data.call] = { stage: String(event.data.move.stage), base: event.data.base };
      return reserve(fold, String(event.data.move.stage), event.data.base);
    case "call.answered":
      // The trial takes over what the call had reserved.
      delete fold.calls[event.data.call];
      return;
    case "call.refused":
    case "call.failed":
      if (event.data.final) releaseCall(fold, event.data.call);
      return;
    case "trial.admitted":
      if (event.data.kind === "search") admitNode(fold, event.data.trial, event.data.move.stage, event.data.base);
      return;
    case "trial.ended":
      return endNode(fold, event.data.trial, event.data.status, state);
    case "trial.retracted":
      return retractNode(fold, event.data.trial, state);
    default:
      return;
  }
}

function reserve(fold: TreeFold, stage: string, base: string): void {
  if (stage === "draft") fold.drafts += 1;
  const node = fold.nodes[base];
  if (node === undefined) return;
  node.children += 1;
  remove(fold, base);
}

function release(fold: TreeFold, stage: string, base: string): void {
  if (stage === "draft") fold.drafts -= 1;
  const node = fold.nodes[base];
  if (node === undefined) return;
  node.children -= 1;
  offer(fold, base);
}

function releaseCall(fold: TreeFold, call: string): void {
  const open = fold.calls[call];
  if (open === undefined) return;
  delete fold.calls[call];
  release(fold, open.stage, open.base);
}

function admitNode(fold: TreeFold, trial: string, stage: string | number | null | undefined, base: string | null): void {
  if (stage === undefined || stage === null) {
    // Somebody handed it in unasked: it hangs below its base like an improvement.
    reserve(fold, "improve", base ?? "");
  }
  const parent = base === null ? undefined : fold.nodes[base];
  const debug = stage === "debug" && parent !== undefined;
  fold.nodes[trial] = { stage: String(stage ?? "improve"), base, debugDepth: debug ? parent.debugDepth + 1 : 0, buggy: false, children: 0 };
}

function endNode(fold: TreeFold, id: string, status: TrialStatus, state: RunState): void {
  const node = fold.nodes[id];
  if (node === undefined) return;
  if (statusClasses[status] === "excluded") {
    delete fold.nodes[id];
    return release(fold, node.stage, node.base ?? "");
  }
  node.buggy = buggy.has(status);
  if (node.buggy) offer(fold, id);
  if (statusClasses[status] !== "valid") return;
  const values = trialOf(state, id).values;
  const best = fold.best === null ? null : trialOf(state, fold.best).values;
  if (values !== null && (best === null || compareValues(configurationOf(state).environment, values, best) > 0)) fold.best = id;
}

/** Puts a buggy leaf among those that may be debugged, if its depth allows it. */
function offer(fold: TreeFold, id: string): void {
  const node = fold.nodes[id];
  if (node === undefined || !node.buggy || node.children > 0 || node.debugDepth > fold.configuration.maxDebugDepth || fold.places[id] !== undefined) return;
  fold.places[id] = fold.debuggable.length;
  fold.debuggable.push(id);
}

function remove(fold: TreeFold, id: string): void {
  const place = fold.places[id];
  const last = fold.debuggable.pop();
  if (place === undefined || last === undefined) {
    if (last !== undefined) fold.debuggable.push(last);
    return;
  }
  delete fold.places[id];
  if (last === id) return;
  fold.debuggable[place] = last;
  fold.places[last] = place;
}

/** A retracted node is gone from every choice; the best is looked for anew. */
function retractNode(fold: TreeFold, id: string, state: RunState): void {
  const node = fold.nodes[id];
  if (node === undefined) return;
  remove(fold, id);
  node.buggy = false;
  if (fold.best !== id) return;
  fold.best = null;
  for (const trial of Object.values(state.trials)) {
    if (trial.kind !== "search" || trial.retracted || trial.status === null || statusClasses[trial.status] !== "valid" || trial.values === null) continue;
    const best = fold.best === null ? null : trialOf(state, fold.best).values;
    if (best === null || compareValues(configurationOf(state).environment, trial.values, best) > 0) fold.best = trial.id;
  }
}
