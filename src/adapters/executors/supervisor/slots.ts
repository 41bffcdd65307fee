import { closeSync } from "node:fs";
import { type CgroupSupport, type ExecutionGroup, removeGroups } from "../../sandbox/cgroup.js";
import type { ProcessIdentity } from "../process-identity.js";
import type { Draft, Records } from "../records.js";
import { type Parked, park, unpark } from "./launch.js";
import type { PipePool } from "./pipes.js";

/** Everything of a start that does not depend on what is started. */
export interface Slot {
  readonly draft: Draft;
  readonly group: ExecutionGroup;
  readonly parked: Parked;
  /** Null in a sandbox. */
  readonly marker: string | null;
}

/** Keeps one sandboxed slot ready, so that a start has little left to do. */
export class Slots {
  private made = 0;
  private ready: Promise<Slot> | null = null;

  constructor(
    private readonly records: Records,
    private readonly cgroups: CgroupSupport,
    private readonly pipes: PipePool,
    private readonly self: ProcessIdentity,
    /** Part of the names of cgroups and markers; no other supervisor has the same. */
    private readonly token: string,
  ) {}

  async take(sandboxed: boolean): Promise<Slot> {
    const ready = sandboxed ? this.ready : null;
    if (ready === null) return this.make(sandboxed);
    this.ready = null;
    const slot = await ready;
    // Somebody may have killed the waiting shell.
    return slot.parked.child.exitCode === null && slot.parked.child.signalCode === null ? slot : this.make(sandboxed);
  }

  /** For a slot that was taken and not used. */
  async putBack(slot: Slot): Promise<void> {
    if (slot.marker === null && this.ready === null) this.ready = Promise.resolve(slot);
    else await this.discard(slot);
  }

  /** Makes the next slot while what was started runs. */
  prepare(): void {
    if (this.ready !== null) return;
    const making = this.make(true);
    this.ready = making;
    making.catch(() => {
      // The next start will try again, and say what is wrong.
      if (this.ready === making) this.ready = null;
    });
  }

  async end(): Promise<void> {
    const ready = this.ready;
    this.ready = null;
    const slot = await ready?.catch(() => null);
    if (slot) await this.discard(slot);
  }

  private async make(sandboxed: boolean): Promise<Slot> {
    this.made += 1;
    const name = `trialist-${this.token}-${this.made}`;
    const marker = sandboxed ? null : name;
    const group = this.cgroups.create(name);
    let draft: Draft | null = null;
    try {
      draft = this.records.draft({ supervisor: this.self, cgroups: group.folders, marker });
      const parked = await park(this.pipes, group, draft.status, sandboxed);
      closeSync(draft.status);
      return { draft, group, parked, marker };
    } catch (error) {
      if (draft !== null) {
        closeSync(draft.status);
        this.records.removeDraft(draft);
      }
      void removeGroups(group.folders);
      throw error;
    }
  }

  private async discard(slot: Slot): Promise<void> {
    unpark(slot.parked);
    this.records.removeDraft(slot.draft);
    await removeGroups(slot.group.folders);
  }
}
