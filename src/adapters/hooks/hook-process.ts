import { spawn } from "node:child_process";

/** How a hook's command ended. */
export interface HookEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly timedOut: boolean;
  /** Why it could not be started; null when it was. */
  readonly unstartable: string | null;
  /** The first bytes of what it printed, both streams as they came. */
  readonly output: string;
  readonly omittedBytes: number;
}

export interface HookStart {
  /** A line for `/bin/sh -c`. */
  readonly command: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly input: string;
  readonly limitMs: number;
}

/** A command that runs. */
export interface RunningHook {
  readonly ended: Promise<HookEnd>;
  /** Ends it with all that it started. */
  kill(): void;
}

const keptBytes = 16 * 1024;

/**
 * Runs an operator's command beside the run: in a session of its own, which Ctrl-C does not reach and whose processes all
 * end at the limit. Never throws and never rejects: what went wrong is in the end.
 */
export function startHook({ command, folder, environment, input, limitMs }: HookStart): RunningHook {
  const output = new KeptOutput();
  let timedOut = false;
  let child: ReturnType<typeof spawn>;
  try {
    child = spawn("/bin/sh", ["-c", command], { cwd: folder, env: { ...environment }, detached: true, stdio: "pipe" });
  } catch (error) {
    return { ended: Promise.resolve(unstartable(error)), kill: () => undefined };
  }
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of it has ended.
    }
    // What left the group may still hold them, and would keep us waiting.
    child.stdin?.destroy();
    child.stdout?.destroy();
    child.stderr?.destroy();
  };
  const limit = setTimeout(() => {
    timedOut = true;
    kill();
  }, limitMs);
  child.stdout?.on("data", (piece: Buffer) => output.add(piece));
  child.stderr?.on("data", (piece: Buffer) => output.add(piece));
  // It may end, or close its input, without reading it.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(input);
  const ended = new Promise<HookEnd>((resolve) => {
    child.once("error", (error) => resolve(unstartable(error)));
    child.once("close", (exitCode, signal) => resolve({ exitCode, signal, timedOut, unstartable: null, ...output.kept() }));
  }).finally(() => clearTimeout(limit));
  return { ended, kill };
}

function unstartable(error: unknown): HookEnd {
  const message = error instanceof Error ? error.message : String(error);
  return { exitCode: null, signal: null, timedOut: false, unstartable: message, output: "", omittedBytes: 0 };
}

/** The beginning of an output; the rest is counted. */
class KeptOutput {
  private readonly pieces: Buffer[] = [];
  private bytes = 0;
  private omitted = 0;

  add(piece: Buffer): void {
    const room = piece.subarray(0, keptBytes - this.bytes);
    if (room.byteLength > 0) this.pieces.push(room);
    this.bytes += room.byteLength;
    this.omitted += piece.byteLength - room.byteLength;
  }

  kept(): Pick<HookEnd, "output" | "omittedBytes"> {
    return { output: Buffer.concat(this.pieces).toString("utf8"), omittedBytes: this.omitted };
  }
}
