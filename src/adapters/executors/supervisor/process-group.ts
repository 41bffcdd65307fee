import type { ExecutionGroup } from "../../sandbox/cgroup.js";
import { sandboxInit } from "../leftovers.js";
import { handlesTermination, kill, type ListedProcess, listProcesses, processesMarked, runs, treeBelow } from "../process-tree.js";

const patienceMs = 30_000;
/** One look at all processes serves every execution that asks within this time. */
const listingAgeMs = 40;

let listing: { readonly at: number; readonly processes: ListedProcess[] } | null = null;

function recentListing(): ListedProcess[] {
  const now = performance.now();
  if (listing === null || now - listing.at > listingAgeMs) listing = { at: now, processes: listProcesses() };
  return listing.processes;
}

/** Everything that one execution started, found by cgroup where there is one, else by ancestry and by marker. */
export class ProcessGroup {
  private init: number | null = null;

  constructor(
    private readonly group: ExecutionGroup,
    /** The process that we started: bubblewrap, or the stage's shell. */
    private readonly outer: number,
    private readonly statusFile: string,
    private readonly marker: string | null,
  ) {}

  /** Process 1 of the sandbox, by its number on the host; null before it exists and without a sandbox. */
  sandboxInit(): number | null {
    if (this.marker !== null) return null;
    this.init ??= sandboxInit(this.statusFile);
    return this.init;
  }

  /** All processes, bubblewrap's own included. */
  members(): number[] {
    const counted = this.group.members();
    if (counted !== null) return counted;
    return this.listed().map((each) => each.pid);
  }

  /** As `members`, with what the process list says about each; costs a walk through /proc. */
  listed(): ListedProcess[] {
    const processes = recentListing();
    const init = this.sandboxInit();
    const found = [...treeBelow(this.outer, processes), ...(init === null ? [] : treeBelow(init, processes))];
    if (this.marker !== null) {
      const marked = new Set(processesMarked(this.marker));
      found.push(...processes.filter((each) => marked.has(each.pid)));
    }
    return [...new Map(found.map((each) => [each.pid, each])).values()].filter((each) => !each.zombie);
  }

  /**
   * Asks the stage's own processes to end. Bubblewrap's are left alone, since their end would kill the others at once,
   * and so is a shell on top that only waits: it would die of the signal, and with it everything that wants its grace.
   */
  terminate(): void {
    listing = null;
    const listed = this.listed();
    const bubblewraps = this.marker === null ? [this.outer, this.sandboxInit()] : [];
    const tops = this.marker === null ? [this.sandboxInit()] : [process.pid];
    const parents = new Set(listed.map((each) => each.parent));
    const onlyWaits = (each: ListedProcess): boolean =>
      tops.includes(each.parent) && parents.has(each.pid) && !handlesTermination(each.pid);
    const asked = listed.filter((each) => !bubblewraps.includes(each.pid) && !onlyWaits(each));
    kill(
      asked.map((each) => each.pid),
      "SIGTERM",
    );
  }

  kill(): void {
    this.group.freezeForks();
    kill([this.outer], "SIGKILL");
    this.killRest();
  }

  private killRest(): void {
    const init = this.sandboxInit();
    listing = null;
    kill([...(init !== null && runs(init) ? [init] : []), ...this.members()], "SIGKILL");
  }

  private anyLeft(): boolean {
    const counted = this.group.members();
    if (counted !== null) return counted.some(runs);
    const init = this.sandboxInit();
    if (this.marker === null) return init !== null && runs(init);
    listing = null;
    return this.listed().length > 0;
  }

  /** To be called after the outer process has ended. False when something cannot be killed. */
  async endRest(): Promise<boolean> {
    const begun = performance.now();
    for (let pause = 1; this.anyLeft(); pause = Math.min(50, pause * 2)) {
      if (performance.now() - begun > patienceMs) return false;
      // In a sandbox the rest is dying already; without one somebody may have stayed.
      if (this.marker !== null || pause > 8) {
        this.group.freezeForks();
        this.killRest();
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    return true;
  }
}
