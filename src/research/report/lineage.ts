import type { RunState, Trial } from "../../core/harness/state.js";

/** From the root to `id`, along the bases that the harness recorded. Empty for a trial that does not exist. */
export function lineageOf(state: RunState, id: string): Trial[] {
  const chain: Trial[] = [];
  const seen = new Set<string>();
  for (let next: string | null = id; next !== null && !seen.has(next); ) {
    seen.add(next);
    const trial: Trial | undefined = state.trials[next];
    if (trial === undefined) break;
    chain.unshift(trial);
    next = trial.base;
  }
  return chain;
}

/** Whether what comes later can be said to stand on it. */
export function isStandingKeep(trial: Trial): boolean {
  return trial.kind === "search" && trial.status === "keep" && !trial.retracted;
}

/**
 * The step that ends with `id`: the trials after the keep (or baseline) below it, oldest first, with itself as the last. What
 * those before it changed is part of it, though they were not kept: drafts that lost to another one, crashes that it repaired.
 */
export function stepOf(state: RunState, id: string): Trial[] {
  const below = lineageOf(state, id);
  const start = below.findLastIndex((trial) => trial.id !== id && (trial.kind === "baseline" || isStandingKeep(trial)));
  return below.slice(start + 1);
}

export interface TreeRow {
  readonly trial: Trial;
  /** 0 for a root. */
  readonly depth: number;
  /** Ids from the root, with `/`. */
  readonly path: string;
}

/** All trials in preorder: every trial before its children, children in ledger order. A base that is unknown makes a root. */
export function preorder(state: RunState): TreeRow[] {
  const children = new Map<string | null, Trial[]>();
  for (const trial of Object.values(state.trials)) {
    const base = trial.base !== null && state.trials[trial.base] !== undefined && trial.base !== trial.id ? trial.base : null;
    const siblings = children.get(base);
    if (siblings === undefined) children.set(base, [trial]);
    else siblings.push(trial);
  }
  const rows: TreeRow[] = [];
  // A stack of its own: a chain of thousands of trials is deeper than the engine's.
  const open: TreeRow[] = (children.get(null) ?? []).map((trial) => ({ trial, depth: 0, path: trial.id })).reverse();
  for (let row = open.pop(); row !== undefined; row = open.pop()) {
    rows.push(row);
    const { depth, path, trial } = row;
    for (const child of (children.get(trial.id) ?? []).toReversed())
      open.push({ trial: child, depth: depth + 1, path: `${path}/${child.id}` });
  }
  return rows;
}
