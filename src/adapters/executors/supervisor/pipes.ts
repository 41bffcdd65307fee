import { execFile } from "node:child_process";
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

const batch = 32;
const run = promisify(execFile);

/**
 * Pipes for the standard streams of stages. Node itself would hand a child Unix sockets, and then a plain
 * `echo problem > /dev/stderr` fails inside, since a socket cannot be opened by its path. Named pipes can; they are made
 * in batches ahead of time and used again, so that no start waits for one.
 */
export class PipePool {
  private readonly free: string[] = [];
  private made = 0;
  private filling: Promise<void> | null = null;

  constructor(private readonly folder: string) {}

  /** Named pipes that nobody else has open. */
  async take(count: number): Promise<string[]> {
    while (this.free.length < count) await this.fill();
    if (this.free.length < count + batch / 4) this.fill().catch(() => undefined);
    return this.free.splice(-count);
  }

  /** To be called when everybody has closed it; what was left in it is gone with that. */
  giveBack(path: string): void {
    this.free.push(path);
  }

  /** For a pipe that somebody may still hold. */
  discard(path: string): void {
    rmSync(path, { force: true });
  }

  private fill(): Promise<void> {
    this.filling ??= this.make().finally(() => {
      this.filling = null;
    });
    return this.filling;
  }

  private async make(): Promise<void> {
    const paths = Array.from({ length: batch }, () => {
      this.made += 1;
      return join(this.folder, `p${this.made}`);
    });
    // Writable for all, because the sandbox's user opens them by /dev/stdout; who gets here is decided by the folder.
    await run("mkfifo", ["-m", "0666", ...paths]);
    this.free.push(...paths);
  }
}

/** Both ends of one pipe: what the child gets, to be closed here after the spawn, and what stays with us. */
export interface PipeEnds {
  readonly path: string;
  readonly child: number;
  readonly ours: number;
}

export function openForReading(path: string): PipeEnds {
  const ours = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { path, ours, child: openSync(path, constants.O_WRONLY) };
}

export function openForWriting(path: string): PipeEnds {
  // An end for both directions first: then neither of the others has to wait for its counterpart, and the child's can be
  // a blocking one, as programs expect of their standard input.
  const both = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const child = openSync(path, constants.O_RDONLY);
  const ours = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  closeSync(both);
  return { path, ours, child };
}

export function reader(ends: PipeEnds): Socket {
  return new Socket({ fd: ends.ours, readable: true, writable: false });
}

export function writer(ends: PipeEnds): Socket {
  return new Socket({ fd: ends.ours, readable: false, writable: true });
}
