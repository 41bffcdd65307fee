import { randomBytes } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { StageExecution } from "../../../core/ports/executor.js";
import { type CgroupSupport, findCgroups, noCgroups, removeGroups } from "../../sandbox/cgroup.js";
import { assertReachable } from "../../sandbox/identity.js";
import { assertUsable, kernelCountsInsideNamespaces, probeSandbox, type SandboxReport } from "../../sandbox/probe.js";
import { ExecutionExistsError, toWire } from "../errors.js";
import { endLeftovers } from "../leftovers.js";
import { identify, isAlive, type ProcessIdentity } from "../process-identity.js";
import { type Hello, onMessages, protocolVersion, type Request, type SupervisorAddress, send, type WireOutput } from "../protocol.js";
import { Records } from "../records.js";
import { addressFile, type SupervisorOptions } from "../supervisor-options.js";
import { removeAbandonedFolders } from "./abandoned-folders.js";
import { RunningExecution } from "./execution.js";
import { unpark } from "./launch.js";
import { PipePool } from "./pipes.js";
import { makeRuntimeFolder, type RuntimeFolder, removeRuntimeFolder } from "./runtime-folder.js";
import { type Slot, Slots } from "./slots.js";

/** The process that owns the executions of one root folder. There is at most one; its lock was taken before. */
export class Supervisor {
  private readonly records: Records;
  private readonly self: ProcessIdentity = identify(process.pid);
  private readonly runtime: RuntimeFolder = makeRuntimeFolder();
  private readonly cgroups: CgroupSupport;
  private readonly pipes: PipePool;
  private readonly limitProcessesInside: boolean;
  private readonly running = new Map<string, RunningExecution>();
  private readonly clients = new Set<Socket>();
  private readonly server: Server;
  private readonly slots: Slots;
  private starting = 0;
  private ending = false;
  private probe: Promise<SandboxReport> | null = null;
  private idle: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: SupervisorOptions,
    private readonly onIdle: () => void,
  ) {
    this.records = new Records(options.root);
    this.cgroups = options.cgroups ? findCgroups() : noCgroups;
    this.limitProcessesInside = !this.cgroups.processes && kernelCountsInsideNamespaces();
    this.pipes = new PipePool(this.runtime.pipes);
    const token = randomBytes(8).toString("hex");
    this.slots = new Slots(this.records, this.cgroups, this.pipes, this.self, token);
    this.server = createServer((socket) => this.accept(socket));
  }

  /** Cleans up after an earlier supervisor and begins to listen. */
  async begin(): Promise<void> {
    await this.cleanUpAfterPredecessor();
    await new Promise<void>((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen(this.runtime.socket, () => resolve());
    });
    const address: SupervisorAddress = { socket: this.runtime.socket, runtimeFolder: this.runtime.path };
    const draft = join(this.options.root, `.${addressFile}`);
    writeFileSync(draft, JSON.stringify(address), { mode: 0o600 });
    renameSync(draft, join(this.options.root, addressFile));
    this.pipes.take(0).catch(() => undefined);
    this.watchIdle();
  }

  private async cleanUpAfterPredecessor(): Promise<void> {
    await removeGroups(this.records.removeDrafts());
    try {
      const address = JSON.parse(readFileSync(join(this.options.root, addressFile), "utf8")) as SupervisorAddress;
      removeRuntimeFolder(address.runtimeFolder);
    } catch {
      // There was none, or it went in order.
    }
    for (const id of this.records.ids()) {
      const handle = this.records.readHandle(id);
      if (handle === null || this.records.readEnd(id) !== null || isAlive(handle.supervisor)) continue;
      await endLeftovers(handle, this.records.folder(id));
    }
    removeAbandonedFolders(this.runtime.path);
  }

  private accept(socket: Socket): void {
    this.clients.add(socket);
    this.watchIdle();
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.clients.delete(socket);
      this.watchIdle();
    });
    onMessages<Request>(socket, (request) => {
      this.handle(request).then(
        (ok) => send(socket, { seq: request.seq, ok: ok ?? null }),
        (error: unknown) => send(socket, { seq: request.seq, error: toWire(error) }),
      );
    });
  }

  private async handle(request: Request): Promise<unknown> {
    switch (request.op) {
      case "hello":
        return { protocol: protocolVersion, pid: process.pid } satisfies Hello;
      case "start":
        return this.start(request.execution);
      case "wait":
        return this.running.get(request.id)?.ended;
      case "stop":
        return this.stop(request.id);
      case "output":
        return this.output(request.id);
    }
  }

  private async start(execution: StageExecution): Promise<void> {
    this.starting += 1;
    try {
      const features = execution.sandbox === "none" ? null : await this.sandboxFeatures();
      assertReachable([...execution.mounts, ...(execution.devices ?? [])].map(({ source }) => source));
      await this.startIn(await this.slots.take(features !== null), execution, features);
    } finally {
      this.starting -= 1;
      if (execution.sandbox === "bubblewrap") setImmediate(() => this.slots.prepare());
      this.watchIdle();
    }
  }

  private async startIn(slot: Slot, execution: StageExecution, features: SandboxReport["features"] | null): Promise<void> {
    if (!this.records.claim(slot.draft, execution.id)) {
      await this.slots.putBack(slot);
      throw existsAlready(execution.id);
    }
    const { records, pipes, cgroups, limitProcessesInside } = this;
    try {
      if (execution.gpus !== undefined && execution.gpus.length > 0) records.writeGpus(execution.id, execution.gpus);
      // Two of the processes in a sandbox are bubblewrap's.
      slot.group.limit({ memoryBytes: execution.limits.memoryBytes, tasks: execution.limits.processes + (features === null ? 0 : 2) });
    } catch (error) {
      const none = { head: Buffer.alloc(0), tail: Buffer.alloc(0) };
      const gone = `its limits could not be set: ${error instanceof Error ? error.message : String(error)}`;
      unpark(slot.parked);
      records.writeEnd(execution.id, slot.draft, { gone }, { stdout: none, stderr: none });
      void removeGroups(slot.group.folders);
      return;
    }
    const running = new RunningExecution(execution, features, slot, { records, pipes, cgroups, limitProcessesInside });
    this.running.set(execution.id, running);
    running.ended.then(() => this.forgetRunning(execution.id)).catch((error: unknown) => this.die(error));
  }

  /** An end that cannot be written (a full disk, say) must not look like a running execution: dying makes it `gone`. */
  private die(error: unknown): void {
    process.stderr.write(`the end of an execution could not be written: ${String(error)}\n`);
    process.exit(1);
  }

  private forgetRunning(id: string): void {
    this.running.delete(id);
    this.watchIdle();
  }

  private async stop(id: string): Promise<void> {
    const running = this.running.get(id);
    running?.stop();
    await running?.ended;
  }

  private output(id: string): WireOutput | null {
    const running = this.running.get(id);
    if (running === undefined) return null;
    const { stdout, stderr } = running.output();
    const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
    return [text(stdout.head), text(stdout.tail), text(stderr.head), text(stderr.tail)];
  }

  private async sandboxFeatures(): Promise<SandboxReport["features"]> {
    this.probe ??= probeSandbox({ identityFolder: this.runtime.identity });
    const report = await this.probe;
    // What was missing may be installed before the next start.
    if (!report.usable) this.probe = null;
    assertUsable(report);
    return report.features;
  }

  private watchIdle(): void {
    clearTimeout(this.idle);
    if (this.ending || this.clients.size > 0 || this.running.size > 0 || this.starting > 0) return;
    this.idle = setTimeout(() => void this.end(), this.options.idleMs);
  }

  private async end(): Promise<void> {
    this.ending = true;
    // From here on nobody can connect; who just did finds the line cut and starts a successor.
    this.server.close();
    for (const client of this.clients) client.destroy();
    rmSync(join(this.options.root, addressFile), { force: true });
    await this.slots.end();
    removeRuntimeFolder(this.runtime.path);
    this.onIdle();
  }
}

function existsAlready(id: string): ExecutionExistsError {
  return new ExecutionExistsError({
    where: id,
    expected: "an execution that was never started before",
    found: "one of the same id",
    todo: "Find that one, or take another id for a new attempt.",
  });
}
