import { TrialistError } from "../../core/protocol/errors.js";

/** One thing that is wrong with an environment, at its place in the file where it has one. */
export interface Problem {
  readonly file: string;
  /** From 1; null for a problem of a file as a whole. */
  readonly line: number | null;
  readonly column: number | null;
  readonly message: string;
}

/** All problems of an environment at once, so that one look mends them all. */
export class EnvironmentInvalidError extends TrialistError {
  readonly kind = "usage";
  constructor(readonly problems: readonly Problem[]) {
    super({
      expected: "a valid environment",
      found: `${problems.length} ${problems.length === 1 ? "problem" : "problems"}:\n${problems.map((each) => `  ${describeProblem(each)}`).join("\n")}`,
      where: problems[0]?.file ?? "environment.yaml",
    });
  }
}

export function describeProblem(problem: Problem): string {
  const place = problem.line === null ? "" : `:${problem.line}:${problem.column ?? 1}`;
  return `${problem.file}${place}: ${problem.message}`;
}

/** The known word that is closest to a mistyped one, if it is close. */
export function closest(word: string, known: readonly string[]): string | null {
  let best: string | null = null;
  let least = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
