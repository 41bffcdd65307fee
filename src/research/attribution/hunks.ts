import { type Change, contentOf, type FileStep, fileSteps, type Tree, textOf } from "./changes.js";
import { applyEdits, editsBetween, linesOf } from "./merge.js";

/** More parts than this are not measured one by one: a whole file is a part then. */
export const mostHunks = 12;

interface Part {
  readonly words: string;
  readonly step: FileStep;
}

/**
 * The whole difference between baseline and winner in parts that can be left out one by one: its hunks, or, where they
 * are too many, its files. For a winner that was written in one step.
 */
export function hunksOf(baseline: Tree, winner: Tree): Change[] {
  const steps = fileSteps(baseline, winner);
  const hunks = steps.flatMap(hunksOfFile);
  const parts = hunks.length <= mostHunks ? hunks : steps.map(wholeFile);
  return parts.map(({ words, step }, index) => ({ id: `h${index + 1}`, base: "t0", words, files: [step] }));
}

function wholeFile(step: FileStep): Part {
  const kind = step.before === null ? "added" : step.after === null ? "removed" : "changed";
  return { words: `${step.path}, ${kind}`, step };
}

function hunksOfFile(step: FileStep): Part[] {
  const { path, before, after } = step;
  const [old, fresh] = [before === null ? null : textOf(before), after === null ? null : textOf(after)];
  if (before === null || after === null || old === null || fresh === null) return [wholeFile(step)];
  const lines = linesOf(fresh);
  const edits = editsBetween(lines, linesOf(old));
  if (edits === null || edits.length < 2) return [wholeFile(step)];
  return edits.map((edit) => {
    const without = contentOf(new TextEncoder().encode(applyEdits(lines, [edit]).join("")), after.executable);
    const last = Math.max(edit.start + 1, edit.end);
    return {
      words: `${path}, line ${edit.start + 1}${last === edit.start + 1 ? "" : ` to ${last}`}`,
      step: { path, before: without, after },
    };
  });
}
