import { spawn } from "node:child_process";
import { WriteMeter } from "./write-meter.js";

export interface WatchedProcess {
  readonly program: string;
  readonly words: readonly string[];
  readonly folder: string;
  /** All that it sees of our environment. */
  readonly variables: Readonly<Record<string, string>>;
  readonly limitMs: number;
}

export interface WatchedEnd {
  readonly stdout: string;
  readonly written: WriteMeter;
}

/** Runs a program without a terminal, as a process group of its own that ends as a whole: at its end, its limit, or ours. */
export async function watch({ program, words, folder, variables, limitMs }: WatchedProcess): Promise<WatchedEnd> {
  const child = spawn(program, words, { cwd: folder, env: { ...variables }, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const { pid } = child;
  if (pid === undefined) throw await new Promise<Error>((resolve) => child.once("error", resolve));
  const endGroup = (): void => kill(-pid);
  const leave = (): void => {
    endGroup();
    process.exit(130);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, leave);
  const written = new WriteMeter(pid);
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    endGroup();
  }, limitMs);
  const closed = new Promise((resolve) => child.once("close", resolve));
  try {
    const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
    // What it left behind would keep its output open.
    endGroup();
    await closed;
    if (code !== 0)
      throw new Error(
        `${words.join(" ")} ${isLate ? `did not end within ${limitMs / 1000} s` : `ended with ${code}`}\n${(stdout + stderr).slice(-3000)}`,
      );
    return { stdout, written };
  } finally {
    clearTimeout(limit);
    written.stop();
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, leave);
  }
}

function kill(group: number): void {
  try {
    process.kill(group, "SIGKILL");
  } catch {
    // Nothing of it is left.
  }
}
