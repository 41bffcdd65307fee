import type { Amount } from "../protocol/budget.js";
import type { ModelRecord } from "./researcher.js";

/** A tool as a model is told of it. */
export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  /** JSON schema of its input. */
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** As the model wrote it: JSON, if it is any. */
  readonly input: string;
}

/** What was said in a session so far. */
export type SessionMessage =
  | { readonly role: "system"; readonly text: string }
  | { readonly role: "user"; readonly text: string }
  | { readonly role: "assistant"; readonly text: string; readonly toolCalls: readonly ToolCall[] }
  | { readonly role: "tool"; readonly call: ToolCall; readonly text: string; readonly isError: boolean };

export interface TurnRequest {
  readonly session: string;
  /** From 1. */
  readonly turn: number;
  readonly seed: number;
  readonly messages: readonly SessionMessage[];
  readonly tools: readonly ToolDescription[];
  /** What this turn may use; infinite where the run has no cap. */
  readonly allowance: Amount;
}

/** One answer of the model: words, tool calls, or both. */
export interface SessionTurn {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly usage: Amount;
  readonly model: ModelRecord;
}

/** A language model that a long session talks with, turn by turn. */
export interface SessionModel {
  readonly name: string;
  /** UTF-8 bytes of messages that it takes in; null where nobody said. */
  readonly room: number | null;
  /** The most that a turn over these messages can use. */
  worstCase(messages: readonly SessionMessage[], tools: readonly ToolDescription[]): Amount;
  /** @throws ResearcherFailedError when no answer came */
  turn(request: TurnRequest, signal: AbortSignal): Promise<SessionTurn>;
}
