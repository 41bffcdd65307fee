import { mkdir, rm } from "node:fs/promises";
import { resolve } from "node:path";
import { createLocalExecutor } from "../adapters/executors/local.js";
import type { Executor } from "../core/ports/executor.js";
import { digestOfValue } from "../core/protocol/canonical.js";
import type { Host } from "./environments.js";

/** Scratch and executor folders of one run on this machine: named by where the run lies, so that two projects never share one. */
export function runKey(runFolder: string): string {
  return digestOfValue(resolve(runFolder)).slice(0, 24);
}

/** The executor whose records lie under a key. Every stage of every use case goes through one made here. */
export function executorAt(host: Host, key: string): Executor {
  return createLocalExecutor({ root: host.cache.folder("executors", key) });
}

/** What work outside of a run has to itself. */
export interface Workplace {
  readonly executor: Executor;
  /** Made, and open to the sandbox's user. */
  readonly scratch: string;
}

/** Does work that nobody resumes, and leaves nothing of it: the executor is closed first, so that no stage writes into what goes. */
export async function withExecutor<T>(host: Host, key: string, work: (workplace: Workplace) => Promise<T>): Promise<T> {
  const executor = executorAt(host, key);
  const scratch = host.cache.folder("scratch", key);
  try {
    await mkdir(scratch, { recursive: true, mode: 0o755 });
    return await work({ executor, scratch });
  } finally {
    await executor.close();
    await rm(scratch, { recursive: true, force: true });
    await rm(host.cache.folder("executors", key), { recursive: true, force: true });
  }
}
