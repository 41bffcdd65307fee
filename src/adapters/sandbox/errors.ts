/** What every error of the sandbox and of the executors says, so that a person can act on it. */
export interface FailureFacts {
  readonly what: string;
  readonly expected: string;
  readonly found: string;
  /** File, folder or id that it is about. */
  readonly where?: string;
  readonly remedy: string;
}

/** The machine could not do what was asked; never the fault of a candidate. */
export class InfrastructureError extends Error {
  override readonly name: string = "InfrastructureError";
  readonly facts: FailureFacts;

  constructor(facts: FailureFacts, options?: { cause?: unknown }) {
    super(
      [
        facts.where === undefined ? facts.what : `${facts.what} (${facts.where})`,
        `  expected: ${facts.expected}`,
        `  found: ${facts.found}`,
        `  what to do: ${facts.remedy}`,
      ].join("\n"),
      options,
    );
    this.facts = facts;
  }
}

/** The sandbox cannot be used on this machine. Nothing falls back to running without it. */
export class SandboxUnavailableError extends InfrastructureError {
  override readonly name = "SandboxUnavailableError";
}

/** A folder that a stage needs is missing, or the sandbox's user cannot get to it. */
export class UnreachableMountError extends InfrastructureError {
  override readonly name = "UnreachableMountError";
}
