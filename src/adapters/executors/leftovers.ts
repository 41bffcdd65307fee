import { readFileSync } from "node:fs";
import { join } from "node:path";
import { groupMembers, removeGroups } from "../sandbox/cgroup.js";
import { isOfThisBoot } from "./process-identity.js";
import { kill, processesMarked, runs } from "./process-tree.js";
import type { Handle } from "./records.js";

const patienceMs = 10_000;

/** First line of bubblewrap's status: process 1 of the sandbox, by its number on the host. */
export function sandboxInit(statusFile: string): number | null {
  try {
    const found = /"child-pid": (\d+)/.exec(readFileSync(statusFile, "utf8"));
    return found === null ? null : Number(found[1]);
  } catch {
    return null;
  }
}

/** The number of a process may have been given away meanwhile: it counts only if it still is bubblewrap in a namespace. */
function isSandboxInit(pid: number): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return /^Name:\tbwrap$/m.test(status) && /^NSpid:\t\d+\t\d+/m.test(status) && runs(pid);
  } catch {
    return false;
  }
}

function living(handle: Handle, statusFile: string): number[] {
  const init = sandboxInit(statusFile);
  return [
    ...handle.cgroups.flatMap(groupMembers),
    ...(handle.marker === null ? [] : processesMarked(handle.marker)),
    ...(init !== null && isSandboxInit(init) ? [init] : []),
  ].filter(runs);
}

/**
 * Ends what an execution left behind when its supervisor died. A sandbox dies with its supervisor by itself, so there is
 * nearly always nothing to kill; without a sandbox there is. Resolves when nothing runs any more.
 */
export async function endLeftovers(handle: Handle, executionFolder: string): Promise<void> {
  // Nothing outlives the machine; a process that has the number now is somebody else's.
  if (!isOfThisBoot(handle.supervisor)) return;
  const statusFile = join(executionFolder, "status");
  const deadline = process.hrtime.bigint() + BigInt(patienceMs) * 1_000_000n;
  for (let left = living(handle, statusFile); left.length > 0; left = living(handle, statusFile)) {
    kill(left, "SIGKILL");
    if (process.hrtime.bigint() > deadline) break;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await removeGroups(handle.cgroups);
}
