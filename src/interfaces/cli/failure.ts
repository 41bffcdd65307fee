import { z } from "zod";
import { printable } from "../../research/report/hostile-text.js";
import { exitCodes } from "./command.js";
import { UsageError } from "./usage-error.js";

interface Described {
  readonly text: string;
  readonly document: { readonly name: string; readonly message: string; readonly exitCode: number };
  readonly exitCode: number;
}

const codeByKind: Readonly<Record<string, number>> = {
  usage: exitCodes.refused,
  refused: exitCodes.refused,
  infrastructure: exitCodes.infrastructure,
  evaluator: exitCodes.infrastructure,
  candidate: exitCodes.refused,
  corrupt: exitCodes.corrupt,
};

/** What a person is told of an error, and the exit code that it stands for. The stack is shown only for a defect. */
export function describeFailure(error: unknown): Described {
  const failure = error instanceof Error ? error : new Error(String(error));
  if (failure instanceof z.ZodError) return describeFailure(new UsageError(`the request does not fit: ${z.prettifyError(failure)}`));
  const kind = (failure as { kind?: unknown }).kind;
  const known = typeof kind === "string" ? codeByKind[kind] : undefined;
  const exitCode = known ?? exitCodes.unexpected;
  const causes = causesOf(failure).map((cause) => `\n  because: ${cause}`);
  const trailer = known === undefined ? `\n${failure.stack ?? ""}\nThis is a defect of trialist; the run's records are whole.` : "";
  return {
    // Names and words of an environment's files are in it, which a stranger may have written.
    text: printable(`trialist: ${failure.message}${causes.join("")}${trailer}`),
    document: { name: failure.name, message: failure.message, exitCode },
    exitCode,
  };
}

function causesOf(error: Error): string[] {
  const messages: string[] = [];
  // A schema's words are JSON for programs; whoever caught them has said the same in a sentence.
  for (let cause = error.cause; cause instanceof Error && messages.length < 5; cause = cause.cause) {
    if (!(cause instanceof z.ZodError)) messages.push(cause.message);
  }
  return messages;
}
