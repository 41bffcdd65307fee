import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { HookFiles } from "../adapters/hooks/hook-files.js";
import { isOwned } from "../adapters/ledger/owner.js";
import { isOver } from "../core/harness/due.js";
import { RefusedError } from "../core/protocol/errors.js";
import { type HookWishes, keepGiven } from "./hooks.js";
import { inspectRun } from "./inspect.js";
import { ledgerAt } from "./ledgers.js";
import { refuseOver } from "./own-run.js";
import type { Project } from "./project.js";

/** Where a run that nobody looks at writes what it would have said. */
export function logFile(project: Project, run: string): string {
  return join(project.existingRun(run), "log.txt");
}

export interface DetachOptions {
  readonly frozen: boolean;
  readonly reason: string;
  /** Kept beside the ledger, as the process that goes on is told nothing else. */
  readonly hooks?: HookWishes | null;
}

interface Detached {
  readonly pid: number;
  readonly log: string;
}

/** How long a detached process may take until it owns its run, in ms: preparing data and runtimes comes after. */
const patienceMs = 30_000;

/**
 * Goes on with a run in a process of its own, in a session of its own: it outlives this process and its terminal.
 * `entry`: the program that this process runs, which is started again.
 * @throws RunOwnedError, or RefusedError for a run that is over, before anything is started
 * @throws RefusedError with what it said, when it ends before it owns the run
 */
export async function detachRun(project: Project, run: string, entry: string, options: DetachOptions): Promise<Detached> {
  const before = refuseIdle(project, run);
  if (options.hooks != null) keepGiven(new HookFiles(project.existingRun(run)), options.hooks);
  const log = logFile(project, run);
  const out = openSync(log, "a", 0o600);
  const words = [entry, "resume", run, ...(options.frozen ? ["--frozen"] : []), "--reason", options.reason, "-C", project.folder];
  const child = spawn(process.execPath, words, { detached: true, stdio: ["ignore", out, out], cwd: project.folder });
  closeSync(out);
  let ended: number | null = null;
  child.once("exit", (code) => {
    ended = code ?? 1;
  });
  const folder = project.existingRun(run);
  for (const deadline = Date.now() + patienceMs; Date.now() < deadline && ended === null && !isOwned(folder); ) await sleep(50);
  if (ended !== null && !hasEnded(project, run, before))
    throw new RefusedError({
      expected: "a process that goes on with the run",
      found: lastLines(log),
      where: log,
      todo: `\`trialist resume ${run}\` shows more.`,
    });
  child.unref();
  return { pid: child.pid ?? 0, log };
}

/** What the other process could only refuse is refused here, where somebody sees it. Returns the ledger's length. */
function refuseIdle(project: Project, run: string): number {
  ledgerAt(project, project.existingRun(run), "own").close();
  const { state, close } = inspectRun(project, run);
  close();
  refuseOver(state, run);
  return state.version;
}

/** A run may be so short that its process has ended well already; one that recorded nothing has refused. */
function hasEnded(project: Project, run: string, before: number): boolean {
  const { state, close } = inspectRun(project, run);
  close();
  return state.version > before && (isOver(state.phase) || state.phase === "suspended");
}

function lastLines(file: string): string {
  return readFileSync(file, "utf8").trim().split("\n").slice(-5).join("\n");
}
