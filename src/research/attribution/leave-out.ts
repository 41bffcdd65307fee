import { type Change, type Content, contentOf, type FileStep, isSameContent, type Tree, textOf } from "./changes.js";
import { mergeTexts } from "./merge.js";

/** The winner without some of its changes; or the paths in which later changes stand on the same lines. */
export type LeftOut = { readonly tree: Tree } | { readonly conflicts: readonly string[] };

/** Takes changes out of a candidate, the newest first. `changes`: in the order in which they were made. */
export function leaveOut(winner: Tree, changes: readonly Change[]): LeftOut {
  const tree = new Map(winner);
  const conflicts = new Set<string>();
  for (const change of changes.toReversed()) {
    for (const step of change.files) {
      const now = tree.get(step.path) ?? null;
      const without = undo(step, now);
      if (without === "conflict") conflicts.add(step.path);
      else if (without === null) tree.delete(step.path);
      else tree.set(step.path, without);
    }
  }
  return conflicts.size > 0 ? { conflicts: [...conflicts] } : { tree };
}

/** One file without what a step did to it: whole where it is as the step left it, else by lines. */
function undo({ before, after }: FileStep, now: Content | null): Content | null | "conflict" {
  if (isSameContent(now, after)) return before;
  // A later change took the step's work away, or the whole file: nothing of it is left.
  if (isSameContent(now, before) || (now === null && after !== null && before !== null)) return now;
  if (before === null || after === null || now === null) return "conflict";
  const executable = before.executable === after.executable ? now.executable : before.executable;
  if (before.digest === after.digest) return { ...now, executable };
  if (now.digest === after.digest) return { ...before, executable };
  if (now.digest === before.digest) return { ...now, executable };
  const [base, ours, theirs] = [textOf(after), textOf(now), textOf(before)];
  const merged = base === null || ours === null || theirs === null ? null : mergeTexts(base, ours, theirs);
  return merged === null ? "conflict" : contentOf(new TextEncoder().encode(merged), executable);
}
