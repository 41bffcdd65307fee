import { statfsSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { DiskFullError } from "../../core/ports/disk-full.js";
import type { CapturedStreams, Executor, Found, StageExecution } from "../../core/ports/executor.js";
import { type Connection, ConnectionLostError, connectExisting, connectOrStart } from "./connection.js";
import { SupervisorError } from "./errors.js";
import { endLeftovers } from "./leftovers.js";
import type { WireOutput } from "./protocol.js";
import { asFound, type End, type EndedOrGone, Records } from "./records.js";
import { assertValidExecution } from "./validate.js";

const defaultIdleMs = 2000;
/** What an outcome and the kept ends of its output need, in bytes; less is a full disk. */
const roomOfAnEnd = 64 * 1024;

/** Options of the executor on this machine. */
export interface LocalExecutorOptions {
  /**
   * Folder for records of executions, one per run; made when missing, closed to others. It is no place for workspaces:
   * what a stage sees comes from its mounts, and those must be reachable for the sandbox's user.
   */
  readonly root: string;
  /** Time after which an idle supervisor without a client ends by itself. Default 2 s. */
  readonly idleMs?: number;
  /** False makes limits be polled even where cgroups could hold them. Default true. */
  readonly cgroups?: boolean;
}

/**
 * Runs stages on this machine through a supervisor process, which outlives us: it holds the limits and writes down the
 * ends. A later executor on the same root finds it again, with everything that runs or has ended.
 */
export function createLocalExecutor(options: LocalExecutorOptions): Executor {
  return new LocalExecutor(options);
}

class LocalExecutor implements Executor {
  private readonly records: Records;
  private readonly options: Required<LocalExecutorOptions>;
  private connection: Promise<Connection> | null = null;
  private closed = false;

  constructor(options: LocalExecutorOptions) {
    const root = isAbsolute(options.root) ? options.root : resolve(options.root);
    this.options = { idleMs: defaultIdleMs, cgroups: true, ...options, root };
    this.records = new Records(root);
  }

  async start(execution: StageExecution): Promise<void> {
    // Work after a close opens the executor anew.
    this.closed = false;
    this.records.folder(execution.id);
    assertValidExecution(execution);
    // A supervisor that is just ending may take the request with it; nothing was started then, or it can be found.
    for (let attempt = 1; ; attempt += 1) {
      const connection = await this.connected();
      try {
        await connection.ask({ op: "start", execution });
        return;
      } catch (error) {
        const lost = error instanceof ConnectionLostError && attempt < 3;
        if (!lost || this.records.find(execution.id).state !== "unknown") throw error;
      }
    }
  }

  async find(id: string): Promise<Found> {
    const found = this.records.find(id);
    if (found.state === "gone") await this.endLeftoversOf(id);
    return found;
  }

  async wait(id: string): Promise<EndedOrGone> {
    for (;;) {
      const found = await this.find(id);
      if (found.state === "gone") this.refuseFullDisk();
      if (found.state === "ended" || found.state === "gone") return found;
      if (found.state === "unknown") return { state: "gone", reason: "it was never started" };
      const end = (await this.askRunning({ op: "wait", id })) as End | null;
      if (end !== null) return asFound(end);
    }
  }

  async output(id: string): Promise<CapturedStreams> {
    if (this.records.find(id).state === "running") {
      const live = (await this.askRunning({ op: "output", id })) as WireOutput | null;
      if (live !== null) return decoded(live);
    }
    return this.records.readOutput(id);
  }

  async stop(id: string): Promise<void> {
    if (this.records.find(id).state !== "running") return;
    await this.askRunning({ op: "stop", id });
    await this.wait(id);
  }

  async gpusInUse(): Promise<readonly { readonly id: string; readonly gpus: readonly number[] }[]> {
    const using = this.records.ids().map((id) => ({ id, gpus: this.records.readGpus(id) }));
    return using.filter(({ id, gpus }) => gpus.length > 0 && this.records.find(id).state === "running");
  }

  async forget(prefix: string): Promise<void> {
    for (const id of this.records.ids()) {
      if (!id.startsWith(prefix)) continue;
      const { state } = await this.find(id);
      if (state === "ended" || state === "gone") this.records.remove(id);
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    const connection = await this.connection?.catch(() => null);
    this.connection = null;
    connection?.close();
  }

  /**
   * Asks the supervisor about an execution that runs. Null when it went away meanwhile: then there is an end, or the
   * execution is gone, and a look at the records tells which.
   */
  private async askRunning(request: { op: "wait" | "stop" | "output"; id: string }): Promise<unknown> {
    // Whoever still waits would connect again, and keep our process alive until what runs has ended.
    if (this.closed) throw closedError(request.id);
    try {
      const connection = await this.existing();
      // A living supervisor that cannot be reached is on its way out; looking again at once would only spin.
      if (connection === null) await new Promise((done) => setTimeout(done, 20));
      return (await connection?.ask(request)) ?? null;
    } catch (error) {
      if (error instanceof ConnectionLostError) return null;
      throw error;
    }
  }

  /** An end for which there was no room is no interrupted attempt: the next ones, of every trial, would be lost likewise. */
  private refuseFullDisk(): void {
    const { root } = this.options;
    const { bavail, bsize } = statfsSync(root);
    if (bavail * bsize >= roomOfAnEnd) return;
    const facts = { expected: "room for the end of a stage", found: "a full disk, or a used-up quota", where: root };
    throw new DiskFullError({ ...facts, todo: "Make room (`trialist gc` finds some), then do the same again." });
  }

  private async endLeftoversOf(id: string): Promise<void> {
    const handle = this.records.readHandle(id);
    if (handle !== null && this.records.readEnd(id) === null) await endLeftovers(handle, this.records.folder(id));
  }

  /** The open conversation, else a new one with whoever supervises this root; null when nobody does. */
  private async existing(): Promise<Connection | null> {
    const current = await this.connection?.catch(() => null);
    if (current?.open) return current;
    const found = await connectExisting(this.options.root);
    if (found !== null) this.connection = Promise.resolve(found);
    return found;
  }

  private async connected(): Promise<Connection> {
    const current = await this.connection?.catch(() => null);
    if (current?.open) return current;
    this.connection = connectOrStart(this.options);
    return this.connection;
  }
}

function closedError(id: string): SupervisorError {
  return new SupervisorError({
    where: id,
    expected: "an open executor",
    found: "one that was closed",
    todo: "What runs goes on by itself; another executor on the same root finds it.",
  });
}

function decoded([outHead, outTail, errHead, errTail]: WireOutput): CapturedStreams {
  const bytes = (text: string): Uint8Array => Buffer.from(text, "base64");
  return { stdout: { head: bytes(outHead), tail: bytes(outTail) }, stderr: { head: bytes(errHead), tail: bytes(errTail) } };
}
