import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable } from "node:stream";
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

/** A program that is ended by one of these fails like one that ends by itself: whoever waits for it cleans up. */
const interruptions = ["SIGINT", "SIGTERM"] as const;

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** Runs a program without a terminal, as a process group of its own that ends as a whole: at its end, its limit, or ours. */
export async function watch({ program, words, folder, variables, limitMs }: WatchedProcess): Promise<WatchedEnd> {
  const child = spawn(program, words, { cwd: folder, env: { ...variables }, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const { pid } = child;
  if (pid === undefined) throw await new Promise<Error>((resolve) => child.once("error", resolve));
  const endGroup = (): void => kill(-pid);
  for (const signal of interruptions) process.on(signal, endGroup);
  const written = new WriteMeter(pid);
  const limit = setTimeout(endGroup, limitMs);
  try {
    const { code, stdout, stderr } = await ended(child, endGroup);
    if (code === 0) return { stdout, written };
    const said = (stdout + stderr).slice(-3000);
    throw new Error(`${words.join(" ")} ended with ${code ?? `a signal (its limit is ${limitMs / 1000} s)`}\n${said}`);
  } finally {
    clearTimeout(limit);
    written.stop();
    for (const signal of interruptions) process.off(signal, endGroup);
  }
}

async function ended(
  child: Child,
  endGroup: () => void,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const [stdout, stderr] = [said(child.stdout), said(child.stderr)];
  const closed = new Promise((resolve) => child.once("close", resolve));
  const code = await new Promise<number | null>((resolve) => child.once("exit", resolve));
  // What it left behind would keep its output open.
  endGroup();
  await closed;
  return { code, stdout: stdout(), stderr: stderr() };
}

function said(stream: Readable): () => string {
  let text = "";
  stream.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  return () => text;
}

function kill(group: number): void {
  try {
    process.kill(group, "SIGKILL");
  } catch {
    // Nothing of it is left.
  }
}
