import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { constants as os } from "node:os";
import { join } from "node:path";
import type { CapturedStreams, StageExecution } from "../../../core/ports/executor.js";
import type { Guarantees, LimitName, StageOutcome } from "../../../core/protocol/outcome.js";
import type { BubblewrapFeatures } from "../../sandbox/bubblewrap.js";
import { type CgroupSupport, removeGroups } from "../../sandbox/cgroup.js";
import type { End, Records } from "../records.js";
import { CapturedStream } from "./captured-stream.js";
import { collectOutputs } from "./collect.js";
import { TemporaryFolders } from "./disk-usage.js";
import { go, type Launched } from "./launch.js";
import type { PipePool } from "./pipes.js";
import { ProcessGroup } from "./process-group.js";
import type { Slot } from "./slots.js";
import { limitThatEnded } from "./verdict.js";
import { LimitWatch } from "./watch.js";

/** How long the pipes may take to run dry once nothing lives that could write to them. */
const drainMs = 2000;
const writeAttempts = 60;
const writePauseMs = 1000;

/** What the supervisor has ready for every execution. */
export interface Surroundings {
  readonly records: Records;
  readonly pipes: PipePool;
  readonly cgroups: CgroupSupport;
  readonly limitProcessesInside: boolean;
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly wallMs: number;
}

/** One execution from the start of its process to its written end. */
export class RunningExecution {
  /** Resolves when the end is written. */
  readonly ended: Promise<End>;
  private readonly stdout: CapturedStream;
  private readonly stderr: CapturedStream;
  private readonly temporary: TemporaryFolders;
  private readonly processes: ProcessGroup;
  private readonly watch: LimitWatch;
  private readonly launched: Launched;
  private readonly drained: Promise<boolean>;
  private killedFor: LimitName | null = null;
  private stopped = false;
  private graceOver: NodeJS.Timeout | undefined;

  constructor(
    private readonly execution: StageExecution,
    /** Null without a sandbox. */
    private readonly features: BubblewrapFeatures | null,
    private readonly slot: Slot,
    private readonly surroundings: Surroundings,
  ) {
    const { group, parked, marker } = slot;
    const { limitProcessesInside } = surroundings;
    const status = join(surroundings.records.folder(execution.id), "status");
    this.stdout = new CapturedStream(execution.keepHeadBytes, execution.keepTailBytes);
    this.stderr = new CapturedStream(execution.keepHeadBytes, execution.keepTailBytes);
    this.temporary = new TemporaryFolders(execution.limits.diskBytes);
    this.processes = new ProcessGroup(group, parked.pid, status, marker);
    this.watch = new LimitWatch(execution, group, this.processes, this.temporary, this.heldByKernel(), (limit) => this.passed(limit));
    this.launched = go(parked, execution, features, { limitProcessesInside, marker });
    const { stdout, stderr } = this.launched;
    this.drained = Promise.all([this.pump(stdout, this.stdout), this.pump(stderr, this.stderr)]).then(() => true);
    this.ended = this.untilEnd();
    this.watch.begin();
  }

  /** Output so far. */
  output(): CapturedStreams {
    return { stdout: this.stdout.kept(), stderr: this.stderr.kept() };
  }

  /** Ends the whole tree at once; no limit is to blame then. */
  stop(): void {
    this.stopped = true;
    this.processes.kill();
  }

  private heldByKernel(): { memory: boolean; processes: "cgroup" | "rlimit" | null } {
    const { cgroups, limitProcessesInside } = this.surroundings;
    const inside = limitProcessesInside && this.features !== null ? "rlimit" : null;
    return { memory: cgroups.memory !== null, processes: cgroups.processes ? "cgroup" : inside };
  }

  private pump(pipe: Socket, captured: CapturedStream): Promise<void> {
    const { outputBytes } = this.execution.limits;
    pipe.on("data", (chunk: Buffer) => {
      captured.add(chunk);
      if (this.stdout.bytes + this.stderr.bytes > outputBytes) this.passed("output");
    });
    return new Promise((resolve) => {
      pipe.on("error", () => pipe.destroy());
      pipe.on("close", () => resolve());
    });
  }

  private passed(limit: LimitName): void {
    if (this.killedFor !== null || this.stopped) return;
    this.killedFor = limit;
    if (limit !== "wall") {
      this.processes.kill();
      return;
    }
    this.processes.terminate();
    this.graceOver = setTimeout(() => this.processes.kill(), this.execution.graceMs);
  }

  private async untilEnd(): Promise<End> {
    const exit = await this.untilExit();
    const refusals = this.slot.group.processRefusals();
    clearTimeout(this.graceOver);
    this.watch.end();
    let end: End;
    try {
      end = await this.concluded(exit, refusals);
    } catch (error) {
      end = { gone: `its end could not be recorded: ${error instanceof Error ? error.message : String(error)}` };
    }
    this.temporary.release();
    await this.writeEnd(end);
    void removeGroups(this.slot.group.folders);
    return end;
  }

  /** A full disk may get room again. If it does not, the failure is passed on, and ends the supervisor. */
  private async writeEnd(end: End): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.surroundings.records.writeEnd(this.execution.id, this.slot.draft, end, this.output());
        return;
      } catch (error) {
        if (attempt === writeAttempts) throw error;
        await new Promise((resolve) => setTimeout(resolve, writePauseMs));
      }
    }
  }

  private untilExit(): Promise<Exit> {
    const { child, startedAt } = this.launched;
    return new Promise((resolve) => {
      child.once("exit", (code, signal) => resolve({ code, signal, wallMs: performance.now() - startedAt }));
    });
  }

  /** `refusals` were counted at the exit: to end what is left, new processes are refused by us. */
  private async concluded(exit: Exit, refusals: number): Promise<End> {
    const allDead = await this.processes.endRest();
    await this.settlePipes();
    if (!allDead) return { gone: "some of its processes could not be killed" };
    const failure = this.failureOfOurs(exit);
    if (failure !== null) return { gone: failure };
    return { outcome: await this.outcome(exit, refusals) };
  }

  private async settlePipes(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), drainMs);
    });
    const dry = await Promise.race([this.drained, tooLong]);
    clearTimeout(timer);
    this.launched.script.destroy();
    this.launched.stdin.destroy();
    this.launched.stdout.destroy();
    this.launched.stderr.destroy();
    for (const path of this.launched.paths) {
      if (dry) this.surroundings.pipes.giveBack(path);
      else this.surroundings.pipes.discard(path);
    }
  }

  /** Why the stage's command did not run, or was ended by something that is neither it nor us; null in all other cases. */
  private failureOfOurs(exit: Exit): string | null {
    const killed = this.slot.group.outOfMemoryKills() > 0;
    if (killed && !this.reachedItsMemory() && (this.killedFor ?? "memory") === "memory" && !this.stopped) {
      return "the machine ran out of memory and killed it below its own limit";
    }
    if (killed || this.killedFor !== null || this.stopped) return null;
    const status = readFileSync(join(this.surroundings.records.folder(this.execution.id), "status"), "utf8");
    const began = this.features === null ? status.includes("started") : status.includes('"exit-code"');
    if (began) return null;
    if (exit.signal !== null) return `it was ended from outside by ${exit.signal}`;
    const said = Buffer.from(this.stderr.kept().head).toString("utf8").trim().split("\n")[0];
    return `the sandbox could not be set up: ${said || `exit code ${exit.code}`}`;
  }

  private reachedItsMemory(): boolean {
    // The kernel kills before the last page is taken, and several processors count in batches.
    return (this.slot.group.peakMemoryBytes() ?? Number.POSITIVE_INFINITY) > this.execution.limits.memoryBytes * 0.9;
  }

  private async outcome(exit: Exit, refusals: number): Promise<StageOutcome> {
    const { execution } = this;
    const { group } = this.slot;
    const { polled } = this.watch;
    const cpuMs = group.cpuMs() ?? polled.cpuMs;
    const { exitCode, signal } = howItEnded(exit);
    const diskBytes = await this.watch.diskBytes();
    const limit = limitThatEnded({
      limits: execution.limits,
      killedFor: this.killedFor,
      stopped: this.stopped,
      endedBadly: exitCode !== 0,
      outOfMemoryKills: group.outOfMemoryKills(),
      processRefusals: refusals + this.polledRefusals(),
      cpuMs,
      diskBytes: Math.max(diskBytes, polled.mostDiskBytes),
      temporaryFull: this.temporary.usage().full,
      outputBytes: this.stdout.bytes + this.stderr.bytes,
    });
    return {
      exitCode,
      signal,
      limit,
      wallMs: exit.wallMs,
      cpuMs,
      peakMemoryBytes: group.peakMemoryBytes() ?? polled.peakMemoryBytes,
      stdout: { bytes: this.stdout.bytes, omittedBytes: this.stdout.omittedBytes },
      stderr: { bytes: this.stderr.bytes, omittedBytes: this.stderr.omittedBytes },
      outputs: await collectOutputs({ ...execution, totalMaxBytes: execution.limits.diskBytes }),
      guarantees: this.guarantees(),
    };
  }

  /** An rlimit keeps no count of its refusals; that all allowed processes were alive at once stands for one. */
  private polledRefusals(): number {
    const full = this.watch.polled.mostProcesses >= this.execution.limits.processes;
    return this.heldByKernel().processes === "rlimit" && full ? 1 : 0;
  }

  private guarantees(): Guarantees {
    const isolated = this.features !== null;
    return {
      sandbox: isolated ? "bubblewrap" : "none",
      networkOff: isolated,
      filesystemIsolated: isolated,
      // Started by root, a sandbox runs as a user of its own; without one it runs as whoever we are.
      unprivileged: isolated || process.getuid?.() !== 0,
      memory: this.surroundings.cgroups.memory ?? "polled",
      processes: this.heldByKernel().processes ?? "polled",
    };
  }
}

/**
 * A shell, and bubblewrap like one, tells that a signal ended a process by an exit code of 128 and the signal's number.
 * That is read back here, with and without a sandbox alike.
 */
function howItEnded(exit: Exit): { exitCode: number | null; signal: string | null } {
  const { code } = exit;
  if (code === null) return { exitCode: null, signal: exit.signal };
  const name = Object.entries(os.signals).find(([, number]) => number === code - 128)?.[0];
  return name === undefined ? { exitCode: code, signal: null } : { exitCode: null, signal: name };
}
