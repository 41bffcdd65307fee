/** What every error of trialist says: what was expected, what was found, where, and what to do. */
export interface ErrorFacts {
  readonly expected: string;
  readonly found: string;
  readonly where?: string;
  readonly todo?: string;
}

/** Base of trialist's errors. `kind` says whose failure it is, so that nobody has to read the message to know. */
export abstract class TrialistError extends Error {
  abstract readonly kind: "usage" | "refused" | "infrastructure" | "candidate" | "evaluator" | "corrupt";
  readonly facts: ErrorFacts;

  constructor(facts: ErrorFacts, options?: { cause?: unknown }) {
    super(sentence(facts), options);
    this.facts = facts;
    this.name = new.target.name;
  }
}

function sentence(facts: ErrorFacts): string {
  const where = facts.where === undefined ? "" : `${facts.where}: `;
  const todo = facts.todo === undefined ? "" : ` ${facts.todo}`;
  const end = facts.found.includes("\n") ? "" : ".";
  return `${where}expected ${facts.expected}; found ${facts.found}${end}${todo}`;
}

/** A command that the state does not allow. Nothing was recorded. */
export class RefusedError extends TrialistError {
  readonly kind = "refused";
}

/** A record that this version does not know or that has another shape: the run stops, it never guesses. */
export class UnknownRecordError extends TrialistError {
  readonly kind = "corrupt";
}
