import { readdirSync, readFileSync } from "node:fs";

interface Sample {
  readonly at: number;
  readonly bytes: number;
}

const everyMs = 200;

/**
 * Bytes that a process and its descendants have sent towards a disk, as the kernel counts them: whole pages, a page again
 * whenever it is written again. Pipes, sockets and file systems in memory do not count. A child that was waited for stays
 * in its parent's sum.
 */
export class WriteMeter {
  private readonly samples: Sample[] = [];
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly pid: number) {
    this.sample();
    this.timer = setInterval(() => this.sample(), everyMs);
  }

  stop(): void {
    clearInterval(this.timer);
    this.sample();
  }

  /** Bytes written up to a moment, between the two samples around it. */
  upTo(at: number): number {
    const after = this.samples.findIndex((sample) => sample.at >= at);
    const [left, right] = [this.samples.at(Math.max(0, after - 1)), this.samples.at(after)];
    if (left === undefined || right === undefined) return Number.NaN;
    if (after === -1 || left === right) return right.bytes;
    return left.bytes + ((right.bytes - left.bytes) * (at - left.at)) / (right.at - left.at);
  }

  private sample(): void {
    // A process that has ended by itself is not there any more: what was known of it stays.
    const bytes = Math.max(this.samples.at(-1)?.bytes ?? 0, writtenBelow(this.pid));
    this.samples.push({ at: Date.now(), bytes });
  }
}

function writtenBelow(pid: number): number {
  const own = /^write_bytes: (\d+)$/m.exec(read(`/proc/${pid}/io`))?.[1] ?? "0";
  return childrenOf(pid).reduce((sum, child) => sum + writtenBelow(child), Number(own));
}

function childrenOf(pid: number): number[] {
  const threads = list(`/proc/${pid}/task`);
  return threads.flatMap((thread) => read(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number));
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Empty when the process has ended meanwhile, or is not ours to look at. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
