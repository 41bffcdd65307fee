import type { SessionRole } from "../core/harness/session-views.js";
import { freshBase } from "../core/harness/steering.js";
import type { ToolDescription } from "../core/ports/session-model.js";
import { externalResearcher } from "../core/protocol/ids.js";
import { type DeskHost, SessionDesk, type ToolResult } from "../research/sessions/desk.js";
import { toolDescriptions } from "../research/tools/descriptions.js";
import type { OwnedRun } from "./own-run.js";

export { type SessionRole, sessionRoles } from "../core/harness/session-views.js";
export type { ToolDescription, ToolResult };

/** A session that somebody outside drives, such as a coding agent over MCP. */
export interface ToolSession {
  readonly role: SessionRole;
  readonly tools: readonly ToolDescription[];
  call(name: string, input: unknown, signal: AbortSignal): Promise<ToolResult>;
  /** The client is gone; what it handed in goes on. */
  close(reason: string): void;
}

/** Opens a session on a run that this process owns; it is on record from its first call in a run that searches. */
export function openToolSession({ runner }: OwnedRun, role: SessionRole): ToolSession {
  const host = runner.deskHost();
  const session: { id: string | null } = { id: null };
  let desk: SessionDesk | null = null;
  let isClosed = false;
  return {
    role,
    tools: toolDescriptions(role, host.services),
    call(name, input, signal) {
      if (isClosed) return Promise.resolve({ text: "this session is closed: connect again", isError: true });
      // The working copy starts from the baseline while nothing else is known.
      if (session.id === null && host.state.phase === "searching") session.id = open(host, role);
      desk ??= new SessionDesk(host, session, role, session.id === null ? "t0" : (host.state.sessions[session.id]?.base ?? "t0"));
      return desk.call(name, input, signal);
    },
    close(reason) {
      isClosed = true;
      const open = session.id === null ? undefined : host.state.sessions[session.id];
      // A preflight that it left in the middle is billed at its reservation.
      if (open !== undefined) host.dispatch({ type: "close_session", session: open.id, reason, interrupted: false, usage: open.reserved });
    },
  };
}

function open(host: DeskHost, role: SessionRole): string {
  const base = freshBase(host.state);
  host.dispatch({ type: "open_session", role, researcher: externalResearcher, base, reopens: null });
  return `s${host.state.counters.session}`;
}
