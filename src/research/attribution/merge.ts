import { diffArrays } from "diff";

/** Lines `start` to before `end` of the old text become these. */
export interface LineEdit {
  readonly start: number;
  readonly end: number;
  readonly lines: readonly string[];
}

/** More inserted and deleted lines than this, and looking for the shortest way between two texts takes too long. */
const maximumEdits = 1000;

/** A text's lines, each with its end, so that joined they are the text. */
export function linesOf(text: string): string[] {
  return text === "" ? [] : text.split(/(?<=\n)/);
}

/** The edits that lead from one text to another, in order; null when the two are too different. */
export function editsBetween(from: readonly string[], to: readonly string[]): LineEdit[] | null {
  const parts = diffArrays([...from], [...to], { maxEditLength: maximumEdits });
  if (parts === undefined) return null;
  const edits: LineEdit[] = [];
  let [at, open] = [0, null as { start: number; end: number; lines: string[] } | null];
  for (const { added, removed, value } of parts) {
    if (!added && !removed) {
      if (open !== null) edits.push(open);
      open = null;
      at += value.length;
      continue;
    }
    open ??= { start: at, end: at, lines: [] };
    if (added) open.lines.push(...value);
    else {
      at += value.length;
      open.end = at;
    }
  }
  return open === null ? edits : [...edits, open];
}

/** The text after these edits, which are in order and do not overlap. */
export function applyEdits(lines: readonly string[], edits: readonly LineEdit[]): string[] {
  const result: string[] = [];
  let at = 0;
  for (const edit of edits) {
    result.push(...lines.slice(at, edit.start), ...edit.lines);
    at = edit.end;
  }
  return [...result, ...lines.slice(at)];
}

/**
 * Three-way merge by lines: `ours` with what leads from `base` to `theirs`. Null where both changed the same lines, or
 * put something into the same place: nobody can tell then what the text without one of them is. Lines side by side may
 * be changed by either: what comes of it is measured, not trusted.
 */
export function mergeTexts(base: string, ours: string, theirs: string): string | null {
  const lines = linesOf(base);
  const [mine, other] = [editsBetween(lines, linesOf(ours)), editsBetween(lines, linesOf(theirs))];
  if (mine === null || other === null) return null;
  const foreign = other.filter((edit) => !mine.some((each) => isSame(each, edit)));
  if (foreign.some((edit) => mine.some((each) => overlap(each, edit)))) return null;
  const all = [...mine, ...foreign].sort((a, b) => a.start - b.start || a.end - b.end);
  return applyEdits(lines, all).join("");
}

function isSame(a: LineEdit, b: LineEdit): boolean {
  return a.start === b.start && a.end === b.end && a.lines.join("") === b.lines.join("");
}

function overlap(a: LineEdit, b: LineEdit): boolean {
  const [isInsertA, isInsertB] = [a.start === a.end, b.start === b.end];
  if (isInsertA && isInsertB) return a.start === b.start;
  // What is put in at the edge of a passage lies outside of it.
  return a.start < b.end && b.start < a.end;
}
