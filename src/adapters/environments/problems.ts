import { TrialistError } from "../../core/protocol/errors.js";

/** One thing that is wrong with an environment, at its place in the file where it has one. */
export interface Problem {
  readonly file: string;
  /** From 1; null for a problem of a file as a whole. */
  readonly line: number | null;
  readonly column: number | null;
  /** Short: "unknown key `limts`". */
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  readonly todo: string;
}

/** All problems of an environment at once, so that one look mends them all. */
export class EnvironmentInvalidError extends TrialistError {
  readonly kind = "usage";
  constructor(readonly problems: readonly Problem[]) {
    super({
      expected: "a valid environment",
      found: `${problems.length} ${problems.length === 1 ? "problem" : "problems"}:\n${problems.map(describeProblem).join("\n")}\n`,
      where: problems[0]?.file ?? "environment.yaml",
    });
  }
}

/** `file:line:column: what`, as editors and terminals understand it, then the rest below. */
function describeProblem(problem: Problem): string {
  const place = problem.line === null ? "" : `:${problem.line}:${problem.column ?? 1}`;
  return [
    `  ${problem.file}${place}: ${problem.what}`,
    `      expected: ${problem.expected}`,
    `      found: ${problem.found}`,
    `      what to do: ${problem.todo}`,
  ].join("\n");
}
