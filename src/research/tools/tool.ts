import type { z } from "zod";
import type { SessionRole } from "../../core/harness/session-views.js";
import type { RunState } from "../../core/harness/state.js";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import type { TimelessCommand } from "../../core/protocol/commands.js";
import type { RunEvent } from "../../core/protocol/events.js";
import type { PreflightResult } from "../engine/preflight.js";
import type { Blobs } from "../roles/role.js";
import type { Workbench } from "../sessions/workbench.js";

/** What a tool works on: the live run as one session sees it. */
export interface ToolContext {
  /** Null: the run is not searching yet. */
  readonly session: string | null;
  readonly role: SessionRole;
  readonly state: RunState;
  readonly blobs: Blobs;
  readonly workbench: Workbench;
  readonly services: ToolServices;
  /** Decides and records. @throws RefusedError when the state does not allow it */
  readonly dispatch: (command: TimelessCommand) => readonly RunEvent[];
  /** What a command would give, without recording anything. */
  readonly foresee: (command: TimelessCommand) => readonly RunEvent[];
  /** Resolves when the trial has ended, or when the run does not go on. Rejects when nobody waits any more. */
  readonly ended: (trial: string, signal: AbortSignal) => Promise<void>;
}

/** What tools need of the machine. */
export interface ToolServices {
  /** Runs the environment's preflight on a candidate for a session. */
  readonly preflight: (session: string, manifest: CandidateManifest, signal: AbortSignal) => Promise<PreflightResult>;
  /** Null: nobody configured one. @throws ToolProblem when it fails */
  readonly webSearch: ((query: string, signal: AbortSignal) => Promise<string>) | null;
}

/** One thing that a session can do. A new one is a file and a line in the registry; MCP and our own loop share them. */
export interface Tool<Shape extends z.ZodRawShape = z.ZodRawShape> {
  readonly name: string;
  /** For the model or the person that chooses among tools. */
  readonly description: string;
  readonly roles: readonly SessionRole[];
  readonly input: z.ZodObject<Shape>;
  /** Default: always. */
  readonly isAvailable?: (services: ToolServices) => boolean;
  /** What the caller is told; JSON. A `ToolProblem` is told too, marked as an error. */
  run(context: ToolContext, input: z.infer<z.ZodObject<Shape>>, signal: AbortSignal): Promise<unknown> | unknown;
}

/** A tool that keeps the type of its input. */
export function tool<Shape extends z.ZodRawShape>(given: Tool<Shape>): Tool<Shape> {
  return given;
}

/** What was asked cannot be done as it was asked; the caller may mend it. */
export class ToolProblem extends Error {
  override readonly name = "ToolProblem";
}
