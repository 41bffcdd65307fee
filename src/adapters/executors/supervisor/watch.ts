import type { StageExecution } from "../../../core/ports/executor.js";
import type { LimitName } from "../../../core/protocol/outcome.js";
import type { ExecutionGroup } from "../../sandbox/cgroup.js";
import { proportionalBytes } from "../process-tree.js";
import { deletedOpenBytes, occupiedBytes, type TemporaryFolders } from "./disk-usage.js";
import type { ProcessGroup } from "./process-group.js";

const firstLookMs = 20;
const slowestLookMs = 100;
const deletedFilesEveryMs = 500;
const longestTimerMs = 2 ** 30;

/** What polling has seen so far; used where no cgroup counts. */
export interface Polled {
  cpuMs: number;
  peakMemoryBytes: number;
  /** The most threads and processes that were alive at one look. */
  mostProcesses: number;
  /** The most disk that was occupied at one look. */
  mostDiskBytes: number;
}

/** Which limits the kernel holds by itself; the others are ours to hold. */
export interface HeldByKernel {
  readonly memory: boolean;
  readonly processes: "cgroup" | "rlimit" | null;
}

/** Looks at a running execution again and again, and reports the first limit that it finds passed. */
export class LimitWatch {
  readonly polled: Polled = { cpuMs: 0, peakMemoryBytes: 0, mostProcesses: 0, mostDiskBytes: 0 };
  private readonly timers = new Set<NodeJS.Timeout>();
  private over = false;
  private deletedSeenAt = 0;
  private deletedBytes = 0;

  constructor(
    private readonly execution: StageExecution,
    private readonly group: ExecutionGroup,
    private readonly processes: ProcessGroup,
    private readonly temporary: TemporaryFolders,
    private readonly held: HeldByKernel,
    private readonly onLimit: (limit: LimitName) => void,
  ) {}

  begin(): void {
    const begun = performance.now();
    this.atWall(begun);
    this.look(firstLookMs);
    this.lookAtDisk(firstLookMs);
  }

  end(): void {
    this.over = true;
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
  }

  private after(ms: number, action: () => void): void {
    if (this.over) return;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      if (!this.over) action();
    }, ms);
    this.timers.add(timer);
  }

  private atWall(begun: number): void {
    const left = this.execution.limits.wallMs - (performance.now() - begun);
    // A timer cannot be longer than 24 days; a longer limit is waited for in pieces.
    this.after(Math.min(Math.max(0, left), longestTimerMs), () => {
      if (left > longestTimerMs) this.atWall(begun);
      else this.onLimit("wall");
    });
  }

  private look(pauseMs: number): void {
    this.after(pauseMs, () => {
      const limit = this.passedLimit();
      if (limit !== null) this.onLimit(limit);
      this.look(Math.min(slowestLookMs, pauseMs * 2));
    });
  }

  private passedLimit(): LimitName | null {
    const { limits } = this.execution;
    if (this.group.outOfMemoryKills() > 0) return "memory";
    const cpuMs = this.group.cpuMs();
    if (cpuMs !== null && cpuMs > limits.cpuMs) return "cpu";
    if (cpuMs === null || !this.held.memory || this.held.processes !== "cgroup") this.poll();
    if (cpuMs === null && this.polled.cpuMs > limits.cpuMs) return "cpu";
    if (!this.held.memory && this.polled.peakMemoryBytes > limits.memoryBytes) return "memory";
    if (this.held.processes === null && this.polled.mostProcesses > limits.processes) return "processes";
    return null;
  }

  /** Without a sandbox all processes are the stage's; in one, the outer two are bubblewrap's. */
  private poll(): void {
    const listed = this.processes.listed();
    const own = this.execution.sandbox === "bubblewrap" ? 2 : 0;
    const threads = listed.reduce((sum, each) => sum + each.threads, 0) - own;
    this.polled.mostProcesses = Math.max(this.polled.mostProcesses, threads);
    const cpuMs = listed.reduce((sum, each) => sum + each.cpuMs, 0);
    this.polled.cpuMs = Math.max(this.polled.cpuMs, cpuMs);
    let memory = listed.reduce((sum, each) => sum + each.residentBytes, 0);
    // Forked workers share most of their pages, and the quick sum counts those once for each.
    if (memory > this.execution.limits.memoryBytes) memory = proportionalBytes(listed.map((each) => each.pid));
    memory += this.temporary.usage().bytes;
    this.polled.peakMemoryBytes = Math.max(this.polled.peakMemoryBytes, memory);
  }

  private lookAtDisk(pauseMs: number): void {
    this.after(pauseMs, () => {
      const begun = performance.now();
      this.diskBytes()
        .then((bytes) => {
          if (this.over) return;
          if (bytes > this.execution.limits.diskBytes) this.onLimit("disk");
          // A walk through many files may cost a tenth of one processor, not more.
          const cost = performance.now() - begun;
          this.lookAtDisk(Math.max(Math.min(slowestLookMs, pauseMs * 2), cost * 10));
        })
        .catch(() => this.lookAtDisk(slowestLookMs));
    });
  }

  /** What the execution occupies now. */
  async diskBytes(): Promise<number> {
    const { limits, writableFolders } = this.execution;
    this.temporary.hold(this.processes.sandboxInit());
    const bytes = (await occupiedBytes(writableFolders, limits.diskBytes)) + this.temporary.usage().bytes + this.deletedFiles();
    this.polled.mostDiskBytes = Math.max(this.polled.mostDiskBytes, bytes);
    return bytes;
  }

  private deletedFiles(): number {
    const now = performance.now();
    if (this.over || now - this.deletedSeenAt < deletedFilesEveryMs) return this.over ? 0 : this.deletedBytes;
    this.deletedSeenAt = now;
    this.deletedBytes = deletedOpenBytes(this.processes.members(), this.execution.writableFolders);
    return this.deletedBytes;
  }
}
