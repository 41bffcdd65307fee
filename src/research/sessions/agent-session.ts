import { configurationOf, type OpenSession, trialOf } from "../../core/harness/state.js";
import { type ModelRecord, ResearcherFailedError } from "../../core/ports/researcher.js";
import type { AgentSession, ReservedTurn, SessionAgent } from "../../core/ports/session-agent.js";
import type { Amount } from "../../core/protocol/budget.js";
import { suspendsRun } from "../../core/protocol/call-failure.js";
import { RefusedError } from "../../core/protocol/errors.js";
import { manifestAt } from "../roles/role.js";
import { toolDescriptions } from "../tools/descriptions.js";
import { agentTask } from "./agent-task.js";
import { type DeskHost, SessionDesk } from "./desk.js";
import { type End, haltOf, suspended } from "./ends.js";

/**
 * Lets an agent work in one long session, until it ends by itself, is stopped, or the run does not search any more. Its
 * end is recorded.
 */
export async function driveAgent(host: DeskHost, agent: SessionAgent, session: OpenSession, signal: AbortSignal): Promise<void> {
  const halt = new AbortController();
  const look = (): void => {
    if (haltOf(host.state) !== null) halt.abort();
  };
  const stopListening = host.onEvent(look);
  look();
  try {
    const end = await endOf(host, agent, sessionFor(host, session, signal), AbortSignal.any([signal, halt.signal]));
    signal.throwIfAborted();
    const open = host.state.sessions[session.id];
    if (open === undefined) return;
    const { reason, interrupted } = haltOf(host.state) ?? end;
    host.dispatch({ type: "close_session", session: session.id, reason, interrupted, usage: open.reserved });
  } finally {
    stopListening();
  }
}

async function endOf(host: DeskHost, agent: SessionAgent, session: AgentSession, signal: AbortSignal): Promise<End> {
  try {
    const reason = await agent.drive(session, signal);
    return { reason: host.redact(reason).slice(0, 4000), interrupted: false };
  } catch (error) {
    // A run that was halted meanwhile ended the agent: whatever it then failed with is not the reason.
    const halt = haltOf(host.state);
    if (halt !== null && (error instanceof ResearcherFailedError || signal.aborted)) return halt;
    if (!(error instanceof ResearcherFailedError) || signal.aborted) throw error;
    if (suspendsRun(error.kind)) return suspended(host, error);
    return { reason: error.message.slice(0, 4000), interrupted: false };
  }
}

function sessionFor(host: DeskHost, { id, epoch, base }: OpenSession, signal: AbortSignal): AgentSession {
  const desk = new SessionDesk(host, { id }, "researcher", base);
  const turns = new Turns(host, id, signal);
  const { files } = manifestAt(trialOf(host.state, base).candidate.blob, host.blobs);
  return {
    id,
    epoch,
    files: files.map(({ path, digest, executable }) => ({ path, executable, bytes: host.blobs.blob(digest) })),
    task: agentTask(host.state, base),
    tools: toolDescriptions("researcher", host.services),
    call: (name, input, asking) => desk.call(name, input, AbortSignal.any([asking, signal])),
    reserve: (worst) => turns.reserve(worst),
  };
}

/** Turns of a session, one after the other, however many requests its agent makes at once. */
class Turns {
  private last: Promise<void> = Promise.resolve();

  constructor(
    private readonly host: DeskHost,
    private readonly session: string,
    /** Nothing is recorded any more. */
    private readonly signal: AbortSignal,
  ) {}

  async reserve(worst: Amount): Promise<ReservedTurn | { readonly refused: string }> {
    const before = this.last;
    let next = (): void => undefined;
    this.last = new Promise((resolve) => {
      next = resolve;
    });
    await before;
    const refused = await this.open(worst);
    if (refused !== null) {
      next();
      return { refused };
    }
    const end = (usage: Amount, model: ModelRecord | null): void => {
      try {
        this.close(usage, model);
      } finally {
        next();
      }
    };
    return { refused: null, end };
  }

  private async open(reservation: Amount): Promise<string | null> {
    const { host, session, signal } = this;
    await this.betweenTurns();
    const open = host.state.sessions[session];
    if (signal.aborted || open === undefined) return "the session is over";
    const most = configurationOf(host.state).limits.sessionTurns;
    if (open.turn >= most) return `its ${most} turns are used up`;
    try {
      host.dispatch({ type: "reserve_turn", session, reservation });
      return null;
    } catch (error) {
      if (error instanceof RefusedError) return error.message;
      throw error;
    }
  }

  /** A preflight takes a turn too. */
  private betweenTurns(): Promise<void> {
    const isFree = (): boolean => this.host.state.sessions[this.session]?.isTurnOpen !== true || this.signal.aborted;
    return new Promise((resolve) => {
      if (isFree()) return resolve();
      const look = (): void => {
        if (!isFree()) return;
        stop();
        resolve();
      };
      const stop = this.host.onEvent(look);
      this.signal.addEventListener("abort", look, { once: true });
    });
  }

  private close(usage: Amount, model: ModelRecord | null): void {
    const { host, session, signal } = this;
    if (signal.aborted || host.state.sessions[session]?.isTurnOpen !== true) return;
    const traffic = model === null ? null : host.blobs.putBlob(model.traffic);
    host.dispatch({ type: "end_turn", session, usage, model: model?.use ?? null, traffic });
  }
}
