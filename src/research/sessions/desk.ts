import { decide } from "../../core/harness/decide.js";
import { isRunning } from "../../core/harness/due.js";
import type { SessionRole } from "../../core/harness/session-views.js";
import { type RunState, trialOf } from "../../core/harness/state.js";
import type { Command, TimelessCommand } from "../../core/protocol/commands.js";
import { isDeeperThan } from "../../core/protocol/depth.js";
import { RefusedError } from "../../core/protocol/errors.js";
import type { RunEvent } from "../../core/protocol/events.js";
import { mapTexts } from "../roles/map-texts.js";
import type { Blobs } from "../roles/role.js";
import { toolsOf } from "../tools/registry.js";
import { type ToolContext, ToolProblem, type ToolServices } from "../tools/tool.js";
import { Workbench } from "./workbench.js";

/** The run that sessions act on. */
export interface DeskHost {
  readonly state: RunState;
  readonly blobs: Blobs;
  /** Decides and records, durable on return. @throws RefusedError */
  readonly dispatch: (command: TimelessCommand) => readonly RunEvent[];
  readonly services: ToolServices;
  readonly now: () => number;
  readonly onEvent: (listener: () => void) => () => void;
  /** Takes secrets out of everything that a session is told. */
  readonly redact: (text: string) => string;
}

export interface ToolResult {
  /** JSON for a result, plain words for a problem. */
  readonly text: string;
  readonly isError: boolean;
}

/** Longest result of a tool, in characters: a session's context is not to be filled by one call. */
const longestResult = 100_000;

/** Levels of a tool's input: none needs more than four. */
const deepest = 32;

/** One open session at its desk: every tool call is performed on the live run and recorded with what it gave. */
export class SessionDesk {
  private readonly workbench: Workbench;

  constructor(
    private readonly host: DeskHost,
    /** Null while the run is not searching yet: what is read then is not recorded, and nothing can be handed in. */
    private readonly session: { readonly id: string | null },
    private readonly role: SessionRole,
    base: string,
  ) {
    this.workbench = new Workbench(host.blobs, base, trialOf(host.state, base).candidate.blob);
  }

  /** Performs one tool call. What the caller did wrong is told, not thrown. Rejects when `signal` aborts or the ledger fails. */
  async call(name: string, given: unknown, signal: AbortSignal): Promise<ToolResult> {
    const result = await this.perform(name, given, signal);
    const told = { text: this.host.redact(result.text).slice(0, longestResult), isError: result.isError };
    this.record(name, given, told);
    return told;
  }

  private async perform(name: string, given: unknown, signal: AbortSignal): Promise<ToolResult> {
    const known = toolsOf(this.role, this.host.services);
    const tool = known.find((each) => each.name === name);
    if (tool === undefined)
      return problem(`there is no tool ${JSON.stringify(name.slice(0, 80))} here; there are ${known.map((each) => each.name).join(", ")}`);
    if (isDeeperThan(given, deepest)) return problem(`the input is nested more than ${deepest} levels deep`);
    const input = tool.input.safeParse(given ?? {});
    if (!input.success) return problem(input.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("\n"));
    try {
      const value = await tool.run(this.context(), input.data, signal);
      // Secrets are taken out before the value is written as JSON, which would change how they look.
      return { text: JSON.stringify(mapTexts(value, this.host.redact), null, 1), isError: false };
    } catch (error) {
      if (error instanceof ToolProblem || error instanceof RefusedError) return problem(error.message);
      throw error;
    }
  }

  private context(): ToolContext {
    const { host, session, role, workbench } = this;
    return {
      session: session.id,
      role,
      state: host.state,
      blobs: host.blobs,
      workbench,
      services: host.services,
      dispatch: host.dispatch,
      foresee: (command) => decide(host.state, { ...command, at: host.now() } as Command).events,
      ended: (trial, signal) => this.ended(trial, signal),
    };
  }

  private ended(trial: string, signal: AbortSignal): Promise<void> {
    const isOver = (): boolean => trialOf(this.host.state, trial).phase === "ended" || !isRunning(this.host.state);
    return new Promise((resolve, reject) => {
      if (isOver()) return resolve();
      const stop = this.host.onEvent(() => {
        if (!isOver()) return;
        stop();
        resolve();
      });
      signal.addEventListener("abort", () => {
        stop();
        reject(signal.reason as Error);
      });
    });
  }

  /** A session that was closed meanwhile has nothing recorded any more. */
  private record(tool: string, given: unknown, result: ToolResult): void {
    const session = this.session.id;
    if (session === null || this.host.state.sessions[session] === undefined) return;
    const traffic = {
      protocol: "trialist/tool-call@1",
      tool: tool.slice(0, 80),
      input: isDeeperThan(given, deepest) ? "(too deep)" : (given ?? {}),
      ...result,
    };
    const bytes = new TextEncoder().encode(JSON.stringify(mapTexts(traffic, this.host.redact)));
    this.host.dispatch({ type: "record_tool", session, tool: tool.slice(0, 80), traffic: this.host.blobs.putBlob(bytes) });
  }
}

function problem(text: string): ToolResult {
  return { text, isError: true };
}
