import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { due, isRunning, untilNextWakeUp } from "../../core/harness/due.js";
import { trialOf } from "../../core/harness/state.js";
import { asDiskFull } from "../../core/ports/disk-full.js";
import { leaving, type Researcher } from "../../core/ports/researcher.js";
import type { SessionAgent } from "../../core/ports/session-agent.js";
import type { SessionModel } from "../../core/ports/session-model.js";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import type { TimelessCommand } from "../../core/protocol/commands.js";
import { RefusedError } from "../../core/protocol/errors.js";
import { Pipeline, type PipelineHost, type StageCommand } from "../engine/pipeline.js";
import { type PreflightResult, runPreflight } from "../engine/preflight.js";
import { settlingCommand } from "../engine/settling.js";
import { manifestAt } from "../roles/role.js";
import { driveAgent } from "../sessions/agent-session.js";
import type { DeskHost } from "../sessions/desk.js";
import { driveSession } from "../sessions/session-loop.js";
import type { ToolServices } from "../tools/tool.js";
import { performRoleCall, type RoleCallHost } from "./role-call.js";
import type { Run } from "./run.js";

export interface RunnerOptions {
  readonly host: Omit<PipelineHost, "blob" | "putBlob" | "record" | "commit" | "settled" | "halted" | "suspend">;
  readonly researchers: ReadonlyMap<string, Researcher>;
  /** Who drives long sessions, by the researcher's name. */
  readonly sessionModels: ReadonlyMap<string, SessionModel>;
  /** Who drives long sessions with a loop of their own. */
  readonly sessionAgents: ReadonlyMap<string, SessionAgent>;
  /** Of long sessions; null: nobody configured one. */
  readonly webSearch: ToolServices["webSearch"];
  /** Takes secrets out of everything that a researcher is shown. */
  readonly redact: (text: string) => string;
}

/** How often the owner leaves a sign of life, in ms. */
const heartbeatMs = 5000;

/**
 * The effect loop: look at the state, see what is due, perform it, append what happened. What happens in one turn of the
 * event loop is written in one transaction at its end, or before the first effect that rests on it: a trial would else
 * wait for the disk several times between two stages.
 */
export class Runner {
  private readonly inFlight = new Map<string, { readonly abort: AbortController; readonly done: Promise<void> }>();
  private wake: () => void = () => undefined;
  private failure: unknown = null;
  private leaving = false;
  private committing: NodeJS.Immediate | null = null;

  constructor(
    private readonly run: Run,
    private readonly options: RunnerOptions,
  ) {}

  /**
   * Runs until the run is over, paused or suspended and everything in flight has come to its next safe point.
   * @throws what an effect threw that is nobody's outcome (a full disk, a lost ownership); the ledger stays whole
   */
  async work(): Promise<void> {
    const beat = setInterval(() => this.beat(), heartbeatMs);
    try {
      for (;;) {
        if (this.failure !== null) throw this.failure;
        if (this.leaving) return;
        this.dropUnwanted();
        if (this.step()) continue;
        if (this.inFlight.size === 0 && !isRunning(this.run.state)) return;
        await this.nextChange();
      }
    } finally {
      clearInterval(beat);
      this.run.checkpoint();
      this.run.ledger.heartbeat(this.run.now());
    }
  }

  /** Nobody waits for a timer: what it finds out is thrown by `work`. */
  private beat(): void {
    try {
      this.run.ledger.heartbeat(this.run.now());
    } catch (error) {
      this.fail(error);
    }
  }

  /** A command from a person or from another process; the loop looks again afterwards. */
  command(command: TimelessCommand): void {
    this.run.dispatch(command);
    this.wake();
  }

  private take(command: TimelessCommand): void {
    this.run.take(command);
    this.committing ??= setImmediate(() => {
      this.committing = null;
      try {
        this.run.commit();
      } catch (error) {
        this.fail(error);
      }
    });
  }

  private fail(error: unknown): void {
    if (this.leaving) return;
    this.failure = error;
    this.leave();
  }

  /** A full disk is nobody's outcome: the run suspends where it can still say so, and what was begun is begun anew after it. */
  private failed(error: unknown): void {
    const full = asDiskFull(error);
    if (full === null || this.leaving) return this.fail(error);
    const { where, found } = full.facts;
    try {
      const reason = `${where === undefined ? "" : `${where}: `}${found}`.slice(0, 4000);
      this.run.dispatch({ type: "suspend", reason, todo: "Make room (`trialist gc` finds some), then resume." });
    } catch {
      this.fail(error);
    }
  }

  /** Lets go of everything at once: calls are aborted, attempts go on by themselves and are adopted by `resume`. */
  leave(): void {
    this.leaving = true;
    for (const { abort } of this.inFlight.values()) abort.abort(leaving);
    this.wake();
  }

  /** Performs what needs no waiting, starts what does. True when the state changed. */
  private step(): boolean {
    const before = this.run.state.version;
    for (const item of due(this.run.state, this.run.now())) {
      switch (item.kind) {
        case "call":
          this.launch(`${item.call}.${item.round}`, (signal) => performRoleCall(this.callHost, item.call, item.round, signal));
          break;
        case "session":
          if (item.isStale) this.launch(item.session, () => this.interruptSession(item.session));
          else this.launch(item.session, (signal) => this.driveSession(item.session, signal));
          break;
        case "measurement":
          this.launch(item.measurement, () => this.measure(item.measurement));
          break;
        default:
          this.take(settlingCommand(item, this.run.state, this.run.ledger));
      }
      // A decision may have made the rest of the list stale.
      if (this.run.state.version !== before) return true;
    }
    return false;
  }

  /** Its owner died: what its open turn may have used is billed, and the organization opens another one. */
  private async interruptSession(id: string): Promise<void> {
    const session = this.run.state.sessions[id];
    if (session === undefined) return;
    await this.options.sessionAgents.get(session.researcher)?.cleanUp(session);
    if (this.leaving || this.run.state.sessions[id] === undefined) return;
    const reason = "the process that drove it ended";
    this.take({ type: "close_session", session: id, reason, interrupted: true, usage: session.reserved });
  }

  private async driveSession(id: string, signal: AbortSignal): Promise<void> {
    const session = this.run.state.sessions[id];
    if (session === undefined) return;
    const { sessionModels, sessionAgents } = this.options;
    const [model, agent] = [sessionModels.get(session.researcher), sessionAgents.get(session.researcher)];
    try {
      if (agent !== undefined) return await driveAgent(this.deskHost(), agent, session, signal);
      if (model !== undefined) return await driveSession(this.deskHost(), model, session, signal);
    } catch (error) {
      // Left in the middle of a turn: the next owner finds it open.
      if (!this.leaving && !signal.aborted) throw error;
      return;
    }
    throw new RefusedError({
      expected: "a researcher that can work in long sessions: a language model, an agent, or mcp for clients from outside",
      found: session.researcher,
      where: "run configuration",
      todo: "`--organization sessions` needs a --researcher such as anthropic:MODEL.",
    });
  }

  /** The run as sessions act on it; every command is durable before its answer goes out. */
  deskHost(): DeskHost {
    const { run } = this;
    return {
      state: run.state,
      blobs: { blob: (digest) => run.ledger.blob(digest), putBlob: (bytes) => run.putBlob(bytes) },
      dispatch: (command) => {
        const events = run.dispatch(command);
        this.wake();
        return events;
      },
      services: { webSearch: this.options.webSearch, preflight: (session, manifest, signal) => this.preflight(session, manifest, signal) },
      now: () => run.now(),
      onEvent: (listener) => run.onEvent(listener),
      redact: this.options.redact,
    };
  }

  private preflights = 0;

  private preflight(session: string, manifest: CandidateManifest, signal: AbortSignal): Promise<PreflightResult> {
    this.preflights += 1;
    const id = `${session}.${this.run.state.epoch}.${this.preflights}`;
    return runPreflight({ ...this.options.host, blob: (digest) => this.run.ledger.blob(digest) }, id, manifest, signal);
  }

  private get callHost(): RoleCallHost {
    const { run, options } = this;
    return {
      run,
      researchers: options.researchers,
      redact: options.redact,
      wanted: (call) => !this.leaving && run.state.calls[call] !== undefined,
      take: (command) => this.take(command),
    };
  }

  private launch(key: string, effect: (signal: AbortSignal) => Promise<void>): void {
    if (this.inFlight.has(key)) return;
    const abort = new AbortController();
    const done = effect(abort.signal)
      .catch((error: unknown) => this.failed(error))
      .finally(() => {
        this.inFlight.delete(key);
        this.wake();
      });
    this.inFlight.set(key, { abort, done });
  }

  private nextChange(): Promise<void> {
    return new Promise((resolve) => {
      const wait = untilNextWakeUp(this.run.state, this.run.now());
      // setTimeout holds 32 bits: longer waits look again in between.
      const timer = wait === null || !isRunning(this.run.state) ? null : setTimeout(resolve, Math.min(wait + 1, 2 ** 30));
      this.wake = () => {
        if (timer !== null) clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Stops what a cancelled trial or a finished run left in flight. */
  private dropUnwanted(): void {
    for (const [key, { abort }] of this.inFlight) {
      if (abort.signal.aborted || this.isWanted(key)) continue;
      // That nobody wants it must be on disk before it is stopped: a killed stage would else look like a crash.
      this.run.commit();
      abort.abort();
      if (key.startsWith("m")) this.stopStages(key);
    }
  }

  /** An attempt between two stages, or one that ended and cleans up, finds its own way out. */
  private isWanted(key: string): boolean {
    const { calls, measurements, sessions } = this.run.state;
    if (key.startsWith("s")) return sessions[key] !== undefined;
    if (key.startsWith("c")) return calls[key.slice(0, key.indexOf("."))] !== undefined;
    return measurements[key] !== undefined || !this.running.has(key);
  }

  private stopStages(measurement: string): void {
    const id = this.running.get(measurement);
    if (id !== undefined) void this.options.host.executor.stop(id).catch(() => undefined);
  }

  /** Measurement → the execution that runs for it now. */
  private readonly running = new Map<string, string>();

  private async measure(id: string): Promise<void> {
    const { run } = this;
    if (run.state.measurements[id]?.running === false) this.take({ type: "start_attempt", measurement: id });
    const measurement = run.state.measurements[id];
    if (measurement === undefined) return;
    const manifest = manifestAt(trialOf(run.state, measurement.subject).candidate.blob, run.ledger);
    const pipeline = new Pipeline(
      this.pipelineHost(measurement.attempt),
      { ...measurement, endedStages: { ...measurement.endedStages } },
      manifest,
    );
    await pipeline.run();
  }

  private pipelineHost(attempt: number): PipelineHost {
    const { run } = this;
    return {
      ...this.options.host,
      blob: (digest) => run.ledger.blob(digest),
      putBlob: (bytes) => run.putBlob(bytes),
      halted: () => this.leaving || !isRunning(run.state),
      suspend: (reason, todo) => {
        this.take({ type: "suspend", reason, todo });
        this.wake();
      },
      commit: () => run.commit(),
      settled: async () => {
        await turnOfTheLoop();
        run.commit();
      },
      record: (command: StageCommand) => {
        if (this.leaving || run.state.measurements[command.measurement]?.running !== true) return false;
        this.take(command);
        if (command.type === "start_stage")
          this.running.set(command.measurement, `${command.measurement}.${attempt}/${command.stage}-${command.repeat}`);
        else this.running.delete(command.measurement);
        this.wake();
        return true;
      },
    };
  }
}
