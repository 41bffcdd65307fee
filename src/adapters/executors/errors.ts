import { asDiskFull, DiskFullError } from "../../core/ports/disk-full.js";
import { type ErrorFacts, TrialistError } from "../../core/protocol/errors.js";
import { InfrastructureError, SandboxUnavailableError, UnreachableMountError } from "../sandbox/errors.js";

/** The id was started before; find it instead. */
export class ExecutionExistsError extends TrialistError {
  readonly kind = "refused";
}

/** An execution that no executor could start, whatever the machine. */
export class InvalidExecutionError extends TrialistError {
  readonly kind = "usage";
}

/** The process that supervises executions could not be started or reached. */
export class SupervisorError extends InfrastructureError {}

/** An error on its way from the supervisor to its client. */
export interface WireError {
  readonly name: string;
  readonly facts: ErrorFacts;
}

const known = [
  ExecutionExistsError,
  InvalidExecutionError,
  SandboxUnavailableError,
  UnreachableMountError,
  SupervisorError,
  DiskFullError,
] as const;

export function toWire(given: unknown): WireError {
  const error = asDiskFull(given) ?? given;
  if (error instanceof TrialistError) return { name: error.name, facts: error.facts };
  const found = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return { name: SupervisorError.name, facts: { expected: "that the supervisor does what it is asked", found } };
}

export function fromWire(wire: WireError): TrialistError {
  const kind = known.find((each) => each.name === wire.name) ?? SupervisorError;
  return new kind(wire.facts);
}
