import { TrialistError } from "../../core/protocol/errors.js";

/** The machine could not do what was asked; never the fault of a candidate. */
export class InfrastructureError extends TrialistError {
  readonly kind = "infrastructure";
}

/** The sandbox cannot be used on this machine. Nothing falls back to running without it. */
export class SandboxUnavailableError extends InfrastructureError {}

/** A folder that a stage needs is missing, or the sandbox's user cannot get to it. */
export class UnreachableMountError extends InfrastructureError {}
