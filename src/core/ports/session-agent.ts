import type { Amount } from "../protocol/budget.js";
import type { ModelRecord } from "./researcher.js";
import type { ToolDescription } from "./session-model.js";

/** The tools of one session on the live run. */
export interface AgentTools {
  readonly tools: readonly ToolDescription[];
  /** `text`: JSON for a result, plain words for a problem. */
  call(name: string, input: unknown, signal: AbortSignal): Promise<{ readonly text: string; readonly isError: boolean }>;
}

/** Serves tools over MCP on a Unix socket, to whoever has the token. */
export type ServeTools = (tools: AgentTools, socketPath: string, token: string) => Promise<{ close(): Promise<void> }>;

/** One request to a model, which the run's budget covers. */
export interface ReservedTurn {
  readonly refused: null;
  /** Must be called once, whatever became of the request: the next one waits for it. */
  end(usage: Amount, model: ModelRecord | null): void;
}

/** A long session as an agent gets it that brings its own loop. */
export interface AgentSession extends AgentTools {
  /** `s3`; with the epoch it names this attempt for ever. */
  readonly id: string;
  readonly epoch: number;
  /** Files of the trial that it starts from. */
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array; readonly executable: boolean }[];
  /** What it has to do, in words. */
  readonly task: string;
  /** Resolves when no other request of this session is open; `refused`: what the run does not allow any more. */
  reserve(worst: Amount): Promise<ReservedTurn | { readonly refused: string }>;
}

/** A program that works in a long session on its own, such as a coding agent: it asks its model itself. */
export interface SessionAgent {
  readonly name: string;
  /**
   * Resolves with why the session ended, when nothing of the agent runs any more and all its turns have ended.
   * `signal`: it is to be stopped.
   * @throws ResearcherFailedError for a failure of its model or of this machine
   */
  drive(session: AgentSession, signal: AbortSignal): Promise<string>;
  /** Ends and removes what a process of ours that died left behind of its session. */
  cleanUp(session: Pick<AgentSession, "id" | "epoch">): Promise<void>;
}
