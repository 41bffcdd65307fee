import { readFileSync } from "node:fs";

/** A process that cannot be mistaken for a later one with the same number. */
export interface ProcessIdentity {
  readonly bootId: string;
  readonly pid: number;
  /** Clock ticks between boot and the start of the process. */
  readonly startTicks: number;
}

/** The fields of /proc/PID/stat after the name, which may itself hold spaces and brackets. Null when there is none. */
export function readStat(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

export function identify(pid: number): ProcessIdentity {
  return { bootId: bootId(), pid, startTicks: Number(readStat(pid)?.[19] ?? 0) };
}

/** Whether the machine has not started anew since. */
export function isOfThisBoot(identity: ProcessIdentity): boolean {
  return identity.bootId === bootId();
}

/** Whether that very process still runs; a zombie does not. */
export function isAlive(identity: ProcessIdentity): boolean {
  if (!isOfThisBoot(identity)) return false;
  const stat = readStat(identity.pid);
  return stat !== null && Number(stat[19]) === identity.startTicks && stat[0] !== "Z" && stat[0] !== "X";
}
