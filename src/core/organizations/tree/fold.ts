import { configurationOf, type RunState, trialOf } from "../../harness/state.js";
import { isHeld, pinnedTrials } from "../../harness/steering.js";
import type { StoredRunEvent } from "../../protocol/events.js";
import { compareValues, missedGate } from "../../protocol/measurement.js";
import { statusClasses, type TrialStatus } from "../../protocol/status.js";
import type { TreeConfiguration } from "./configuration.js";

/**
 * What the tree's policies know, folded from events. A node is a searched trial that ended, less excluded and retracted
 * ones; a refused proposal is no node. Plain JSON; every event costs the same at any age, except for what takes the best away
 * or gives a better one back: a retraction, the operator's word.
 */
export interface TreeFold {
  readonly configuration: TreeConfiguration;
  /** Decisions made so far: the index of the next draw. */
  decisions: number;
  /** Parentless nodes, and how many more open calls and open trials may become. */
  drafts: { ended: number; open: number };
  /** Of the open ones, trials that the operator holds: they end when they are told to. */
  heldDrafts: number;
  nodes: Record<string, TreeNode>;
  /** Buggy leaves that may be debugged, in arbitrary order; a node's `place` says where it stands. */
  debuggable: string[];
  /** Good nodes in the order of their ends, and the best by raw value of those that nobody holds. */
  good: string[];
  best: string | null;
  /** Trials that improvements start from, in the order of their pins, and how many improvements of pinned ones were asked for. */
  pins: string[];
  pinned: number;
  /** Open call → what it may become: given back if it brings no trial. */
  calls: Record<string, Branch>;
}

export type TreeStage = "draft" | "debug" | "improve";

interface Branch {
  readonly stage: TreeStage;
  /** The node that it grows from; null: from no node. */
  readonly parent: string | null;
}

export interface TreeNode extends Branch {
  /** `idle`: neither improved nor debugged. `open`: not ended, no node yet. */
  kind: "open" | "good" | "buggy" | "idle";
  /** Consecutive debug edges that end here; 0 off a debug edge. */
  readonly debugDepth: number;
  /** Never debugged, whatever its depth. */
  terminal: boolean;
  /** Nodes below it, and open calls and trials that may become one: a leaf has none. */
  children: number;
  /** By the operator: neither improved nor debugged. */
  held: boolean;
  /** Index in `debuggable`. */
  place: number | null;
}

export function initialFold(configuration: TreeConfiguration): TreeFold {
  const drafts = { ended: 0, open: 0 };
  return {
    configuration,
    decisions: 0,
    drafts,
    heldDrafts: 0,
    nodes: {},
    debuggable: [],
    good: [],
    best: null,
    pins: [],
    pinned: 0,
    calls: {},
  };
}

export function evolveFold(fold: TreeFold, event: StoredRunEvent, state: RunState): void {
  switch (event.type) {
    case "call.requested": {
      fold.decisions += 1;
      if (event.data.move.stage === "improve" && fold.pins.includes(event.data.base)) fold.pinned += 1;
      const branch = branchOf(fold, event.data.move, event.data.base);
      fold.calls[event.data.call] = branch;
      return reserve(fold, branch);
    }
    case "call.answered":
      // The trial that is admitted in the same decision takes the place over.
      return endCall(fold, event.data.call);
    case "call.refused":
    case "call.failed":
      if (event.data.final) endCall(fold, event.data.call);
      return;
    case "trial.admitted":
      if (event.data.kind === "search") admitNode(fold, event.data.trial, branchOf(fold, event.data.move, event.data.base));
      return;
    case "trial.ended":
      return endNode(fold, event.data.trial, event.data.status, state);
    case "trial.steered":
      return steerNode(fold, event.data.trial, state);
    case "trial.retracted":
      fold.pins = pinnedTrials(state);
      return retractNode(fold, event.data.trial, state);
    default:
      return;
  }
}

/** From a policy's move; what somebody handed in unasked is what its base makes of it. */
function branchOf(fold: TreeFold, move: Readonly<Record<string, string | number | null>>, base: string | null): Branch {
  // A base that was retracted meanwhile is still where the candidate came from.
  if (move.stage === "debug" || move.stage === "improve") return { stage: move.stage, parent: base };
  const node = base === null ? undefined : fold.nodes[base];
  if (move.stage === "draft" || node === undefined) return { stage: "draft", parent: null };
  return { stage: node.kind === "buggy" ? "debug" : "improve", parent: base };
}

function reserve(fold: TreeFold, branch: Branch): void {
  if (branch.parent === null) fold.drafts.open += 1;
  else grow(fold, branch.parent, 1);
}

function release(fold: TreeFold, branch: Branch): void {
  if (branch.parent === null) fold.drafts.open -= 1;
  else grow(fold, branch.parent, -1);
}

function grow(fold: TreeFold, id: string, by: 1 | -1): void {
  const node = fold.nodes[id];
  if (node === undefined) return;
  node.children += by;
  place(fold, id, node);
}

function endCall(fold: TreeFold, call: string): void {
  const branch = fold.calls[call];
  if (branch === undefined) return;
  delete fold.calls[call];
  release(fold, branch);
}

function admitNode(fold: TreeFold, trial: string, branch: Branch): void {
  const parent = branch.parent === null ? undefined : fold.nodes[branch.parent];
  const debugDepth = branch.stage === "debug" ? (parent?.debugDepth ?? 0) + 1 : 0;
  fold.nodes[trial] = { ...branch, kind: "open", debugDepth, terminal: false, children: 0, held: false, place: null };
  reserve(fold, branch);
}

function endNode(fold: TreeFold, id: string, status: TrialStatus, state: RunState): void {
  const node = fold.nodes[id];
  if (node === undefined) return;
  if (statusClasses[status] === "excluded") return dropNode(fold, id, node);
  if (node.parent === null) {
    fold.drafts.open -= 1;
    fold.drafts.ended += 1;
    if (node.held) fold.heldDrafts -= 1;
  }
  node.kind = kindOf(state, id, status);
  node.terminal = fold.configuration.terminal.includes(status);
  place(fold, id, node);
  if (node.kind !== "good") return;
  fold.good.push(id);
  if (!node.held && isBetter(state, id, fold.best)) fold.best = id;
}

/** What is held is gone from every choice and still counted; what is released is as it would have been. */
function steerNode(fold: TreeFold, id: string, state: RunState): void {
  fold.pins = pinnedTrials(state);
  const node = fold.nodes[id];
  const held = isHeld(state, id);
  if (node === undefined || node.held === held) return;
  node.held = held;
  place(fold, id, node);
  if (node.kind === "open" && node.parent === null) fold.heldDrafts += held ? 1 : -1;
  if (node.kind === "good" && (!held || fold.best === id)) findBest(fold, state);
}

function findBest(fold: TreeFold, state: RunState): void {
  fold.best = null;
  for (const id of fold.good) if (fold.nodes[id]?.held === false && isBetter(state, id, fold.best)) fold.best = id;
}

function kindOf(state: RunState, id: string, status: TrialStatus): TreeNode["kind"] {
  if (statusClasses[status] === "valid") return "good";
  if (status !== "gate_missed") return "buggy";
  // A missed gate is a result that does not count, unless the environment calls the gate a rule of validity.
  return missedGate(configurationOf(state).environment.gates, trialOf(state, id).values ?? {})?.validity === true ? "buggy" : "idle";
}

function isBetter(state: RunState, id: string, than: string | null): boolean {
  if (than === null) return true;
  return compareValues(configurationOf(state).environment, trialOf(state, id).values ?? {}, trialOf(state, than).values ?? {}) > 0;
}

/** A retracted node is gone from every choice and every count; the best is looked for anew. */
function retractNode(fold: TreeFold, id: string, state: RunState): void {
  const node = fold.nodes[id];
  if (node === undefined) return;
  dropNode(fold, id, node);
  if (node.kind !== "good") return;
  fold.good = fold.good.filter((other) => other !== id);
  if (fold.best === id) findBest(fold, state);
}

/** As if it had never been there. What grew from it stays. */
function dropNode(fold: TreeFold, id: string, node: TreeNode): void {
  delete fold.nodes[id];
  unplace(fold, node);
  if (node.held && node.parent === null && node.kind === "open") fold.heldDrafts -= 1;
  if (node.parent === null && node.kind !== "open") fold.drafts.ended -= 1;
  else release(fold, node);
}

/** Puts a node among those that may be debugged, or takes it out, as its state says. */
function place(fold: TreeFold, id: string, node: TreeNode): void {
  const { kind, children, terminal, held, debugDepth } = node;
  const eligible = kind === "buggy" && children === 0 && !terminal && !held && debugDepth <= fold.configuration.maxDebugDepth;
  if (!eligible) return unplace(fold, node);
  if (node.place !== null) return;
  node.place = fold.debuggable.length;
  fold.debuggable.push(id);
}

/** The last one moves into the gap. */
function unplace(fold: TreeFold, node: TreeNode): void {
  if (node.place === null) return;
  const last = fold.debuggable.pop();
  const moved = last === undefined ? undefined : fold.nodes[last];
  if (last !== undefined && moved !== undefined && node.place < fold.debuggable.length) {
    fold.debuggable[node.place] = last;
    moved.place = node.place;
  }
  node.place = null;
}
