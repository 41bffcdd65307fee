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
