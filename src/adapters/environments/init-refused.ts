import { TrialistError } from "../../core/protocol/errors.js";

/** `trialist init` cannot write an environment from what it was told. */
export class InitRefusedError extends TrialistError {
  readonly kind = "refused";
}

export function noFolder(given: string): InitRefusedError {
  return new InitRefusedError({
    expected: "an existing folder",
    found: "nothing there",
    where: given,
    todo: "Create it, or change into the folder with your script.",
  });
}
