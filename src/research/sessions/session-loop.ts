import { drawsOf } from "../../core/harness/draw.js";
import { configurationOf, type OpenSession } from "../../core/harness/state.js";
import { ResearcherFailedError } from "../../core/ports/researcher.js";
import type { SessionModel, SessionTurn, ToolDescription } from "../../core/ports/session-model.js";
import { type Amount, exceeds, nothing } from "../../core/protocol/budget.js";
import { suspendsRun } from "../../core/protocol/call-failure.js";
import { RefusedError } from "../../core/protocol/errors.js";
import { toolDescriptions } from "../tools/descriptions.js";
import { Conversation, inputOf } from "./conversation.js";
import { type DeskHost, SessionDesk } from "./desk.js";
import { type End, haltOf, suspended } from "./ends.js";

/** Turns in a row that only talk, or fail, after which a session ends. */
const patience = 3;
/** Tool calls of one answer that are performed. */
const mostCalls = 16;

/**
 * Drives one long session: turn by turn the model calls tools on the live run, until it says that it is done, its turns
 * or the run's budget are used up, or the run does not search any more. Its end is recorded.
 */
export async function driveSession(host: DeskHost, model: SessionModel, session: OpenSession, signal: AbortSignal): Promise<void> {
  const loop = new SessionLoop(host, model, session);
  const { reason, interrupted } = await loop.work(signal);
  const open = host.state.sessions[session.id];
  if (open === undefined) return;
  host.dispatch({ type: "close_session", session: session.id, reason, interrupted, usage: open.reserved });
}

class SessionLoop {
  private readonly desk: SessionDesk;
  private readonly conversation: Conversation;
  private readonly tools: readonly ToolDescription[];
  private idle = 0;

  constructor(
    private readonly host: DeskHost,
    private readonly model: SessionModel,
    private readonly session: OpenSession,
  ) {
    this.tools = toolDescriptions("researcher", host.services);
    this.desk = new SessionDesk(host, { id: session.id }, "researcher", session.base);
    this.conversation = new Conversation(host.state, session.base, host.redact, model.room);
  }

  async work(signal: AbortSignal): Promise<End> {
    const { host, session } = this;
    const most = configurationOf(host.state).limits.sessionTurns;
    for (let turn = 1; turn <= most; turn++) {
      const halt = haltOf(host.state);
      if (halt !== null) return halt;
      const answer = await this.turn(turn, signal);
      if (answer === null) continue;
      if ("reason" in answer) return answer;
      if (host.state.sessions[session.id] === undefined) return { reason: "closed", interrupted: false };
      const end = await this.act(answer, signal);
      if (end !== null) return end;
    }
    return { reason: `its ${most} turns are used up`, interrupted: false };
  }

  /** Asks for one turn within its reservation, and books it; null: nothing came, and it is worth another try. */
  private async turn(turn: number, signal: AbortSignal): Promise<SessionTurn | End | null> {
    const { host, model, session, tools } = this;
    const messages = this.conversation.messages();
    const reservation = model.worstCase(messages, tools);
    const refused = await this.reserve(reservation, signal);
    if (refused !== null) return refused;
    const { budget, seed } = configurationOf(host.state);
    const allowance = {
      ...reservation,
      costUsd: budget.costUsd === null ? Number.POSITIVE_INFINITY : reservation.costUsd,
      tokens: budget.tokens === null ? Number.POSITIVE_INFINITY : reservation.tokens,
    };
    const draw = drawsOf(seed).seed(`session/${session.id}`, turn);
    try {
      const answer = await model.turn({ session: session.id, turn, seed: draw, messages, tools, allowance }, signal);
      this.book(answer.usage, answer.model);
      return answer;
    } catch (error) {
      if (!(error instanceof ResearcherFailedError)) throw error;
      this.book(error.usage, error.model);
      return this.failed(error);
    }
  }

  /** Reserves the turn, waiting while others hold what is left; its end, where what is spent leaves no room. */
  private async reserve(reservation: Amount, signal: AbortSignal): Promise<End | null> {
    const { host, session } = this;
    for (;;) {
      try {
        host.dispatch({ type: "reserve_turn", session: session.id, reservation });
        return null;
      } catch (error) {
        if (!(error instanceof RefusedError)) throw error;
        const { budget } = configurationOf(host.state);
        const isSpent = exceeds({ ...host.state.budget, reserved: nothing }, budget, reservation) !== null;
        const halt = haltOf(host.state);
        if (isSpent || halt !== null || host.state.sessions[session.id] === undefined)
          return halt ?? { reason: error.message, interrupted: false };
        await nextEvent(host, signal);
      }
    }
  }

  private book(usage: ResearcherFailedError["usage"], model: ResearcherFailedError["model"]): void {
    const { host, session } = this;
    if (host.state.sessions[session.id]?.isTurnOpen !== true) return;
    const traffic = model === null ? null : host.blobs.putBlob(model.traffic);
    host.dispatch({ type: "end_turn", session: session.id, usage, model: model?.use ?? null, traffic });
  }

  /** What would only come again suspends the run; a session that was cut off goes on with another one afterwards. */
  private failed(error: ResearcherFailedError): End | null {
    if (suspendsRun(error.kind)) return suspended(this.host, error);
    this.idle += 1;
    if (this.idle >= patience) return { reason: `${patience} turns in a row failed: ${error.message}`.slice(0, 4000), interrupted: false };
    return null;
  }

  /** Performs what the model asked for; its end, when it is done. */
  private async act({ text, toolCalls }: SessionTurn, signal: AbortSignal): Promise<End | null> {
    if (toolCalls.length === 0) {
      if (/\bDONE\b/.test(text)) return { reason: "it said that it is done", interrupted: false };
      this.idle += 1;
      if (this.idle >= patience) return { reason: `${patience} turns in a row did nothing`, interrupted: false };
      if (text !== "") this.conversation.answered(text, []);
      this.conversation.nudge("Use a tool: submit_trial hands your working copy in. Say DONE when nothing is left to try.");
      return null;
    }
    this.idle = 0;
    this.conversation.answered(text, toolCalls);
    for (const [index, call] of toolCalls.entries()) {
      if (index >= mostCalls) {
        this.conversation.told(call, `at most ${mostCalls} tool calls in one answer are performed: call it again`, true);
        continue;
      }
      const { text: told, isError } = await this.desk.call(call.name, inputOf(call), signal);
      this.conversation.told(call, told, isError);
    }
    return null;
  }
}

function nextEvent(host: DeskHost, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = host.onEvent(() => {
      stop();
      resolve();
    });
    signal.addEventListener("abort", () => {
      stop();
      reject(signal.reason as Error);
    });
  });
}
