import { readdirSync, readFileSync } from "node:fs";
import { readStat } from "./process-identity.js";

/** One process as the kernel lists it. */
export interface ListedProcess {
  readonly pid: number;
  readonly parent: number;
  readonly zombie: boolean;
  readonly threads: number;
  /** User and system time, its own and that of the children it has waited for. */
  readonly cpuMs: number;
  readonly residentBytes: number;
}

// Linux has told user space "100 ticks a second" and "4 KiB pages" on x86 for ever; arm64 kernels may have larger pages,
// and the memory file is then read in KiB instead.
const millisecondsPerTick = 10;
const pageBytes = 4096;

/** All processes of the machine; a reading that is only ever used where no cgroup counts for us. */
export function listProcesses(): ListedProcess[] {
  const processes: ListedProcess[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const stat = readStat(pid);
    if (stat === null) continue;
    const ticks = [11, 12, 13, 14].reduce((sum, field) => sum + Number(stat[field]), 0);
    processes.push({
      pid,
      parent: Number(stat[1]),
      zombie: stat[0] === "Z" || stat[0] === "X",
      threads: Number(stat[17]),
      cpuMs: ticks * millisecondsPerTick,
      residentBytes: Number(stat[21]) * pageBytes,
    });
  }
  return processes;
}

/** A process and everything below it. */
export function treeBelow(root: number, processes: readonly ListedProcess[]): ListedProcess[] {
  const children = new Map<number, ListedProcess[]>();
  for (const each of processes) {
    const siblings = children.get(each.parent);
    if (siblings === undefined) children.set(each.parent, [each]);
    else siblings.push(each);
  }
  const tree = processes.filter((each) => each.pid === root);
  for (let index = 0; index < tree.length; index += 1) tree.push(...(children.get(tree[index]?.pid ?? -1) ?? []));
  return tree;
}

/**
 * Processes that inherited an execution's marker, wherever they hang in the tree: a process that detached itself has
 * another parent and session, yet the same environment unless it took pains to lose it.
 */
export function processesMarked(marker: string): number[] {
  const marked: number[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      if (readFileSync(`/proc/${pid}/environ`, "latin1").includes(marker)) marked.push(pid);
    } catch {
      // Somebody else's process, or gone.
    }
  }
  return marked;
}

/** Memory of processes with shared pages counted once; exact and slow, so only asked when the quick sum is too high. */
export function proportionalBytes(pids: readonly number[]): number {
  let total = 0;
  for (const pid of pids) {
    try {
      const line = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
      total += Number(line?.[1] ?? 0) * 1024;
    } catch {
      // Gone.
    }
  }
  return total;
}

export function kill(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    // To kill(2), 0 and negative numbers mean whole groups, and -1 means everybody.
    if (pid <= 1 || pid === process.pid) continue;
    try {
      process.kill(pid, signal);
    } catch {
      // Gone.
    }
  }
}

/** Whether a process still runs code; a zombie, and nobody, does not. */
export function runs(pid: number): boolean {
  const stat = readStat(pid);
  return stat !== null && stat[0] !== "Z" && stat[0] !== "X";
}

const terminationBit = 1n << 14n;

/** Whether a process has a handler of its own for SIGTERM, or ignores it. */
export function handlesTermination(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const masks = [...status.matchAll(/^Sig(?:Cgt|Ign):\s+([0-9a-f]+)$/gm)].map((match) => BigInt(`0x${match[1]}`));
    return masks.some((mask) => (mask & terminationBit) !== 0n);
  } catch {
    return false;
  }
}
