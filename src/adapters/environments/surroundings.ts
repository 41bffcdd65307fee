import { lstatSync, opendirSync } from "node:fs";
import { join } from "node:path";
import type { Changed } from "../../core/ports/prepared-environment.js";
import { type Digest, digestOfValue } from "../../core/protocol/canonical.js";
import type { Environment } from "../../core/protocol/environment.js";
import type { Cache } from "./cache.js";
import { digestMount } from "./mount-digest.js";
import { fingerprintPrefix } from "./prefix-fingerprint.js";

/** What a run rests on and nothing freezes: mounts, and an existing prefix. */
export interface SurroundingsRecord {
  /** In the contract's order; null: it could not be read. */
  readonly mounts: readonly (Digest | null)[];
  readonly prefix: Digest | null;
}

type Surrounded = Pick<Environment, "mounts" | "runtime">;

/** Entries that a quick look takes in; a folder with more of them is looked at as a whole from time to time. */
const quickEntries = 2000;
const thoroughEveryMs = 60_000;
/** A thorough look may take no more than this part of the time. */
const thoroughShare = 20;

/** The surroundings as they are now. */
export async function surroundingsNow({ mounts, runtime }: Surrounded, cache: Cache): Promise<SurroundingsRecord> {
  const digests = [];
  for (const mount of mounts) digests.push(await digestMount(mount, cache).catch(() => null));
  return { mounts: digests, prefix: runtime?.kind === "prefix" ? fingerprintPrefix(runtime.use) : null };
}

/** Notices when the surroundings are not what they were. */
export class Surroundings {
  private looking: Promise<Changed | null> | null = null;
  /** By mount: what a quick look saw when the mount was last found to be the same, and when it is looked at as a whole. */
  private readonly seen: { quick: Digest | null; thoroughAt: number }[];

  constructor(
    private readonly environment: Surrounded,
    private readonly cache: Cache,
    private readonly expected: SurroundingsRecord,
  ) {
    this.seen = environment.mounts.map(() => ({ quick: null, thoroughAt: 0 }));
  }

  /** The first thing that changed, or null. Cheap enough for every stage: a small mount is seen whole, a large one in part. */
  changed(): Promise<Changed | null> {
    this.looking ??= this.look().finally(() => {
      this.looking = null;
    });
    return this.looking;
  }

  private async look(): Promise<Changed | null> {
    for (const [index, mount] of this.environment.mounts.entries()) {
      const found = mount.digest === "none" ? null : await this.lookAt(index);
      if (found !== null) return changedMount(mount.source, found);
    }
    const { runtime } = this.environment;
    if (runtime?.kind !== "prefix" || this.expected.prefix === null || fingerprintPrefix(runtime.use) === this.expected.prefix) return null;
    return {
      reason: `the runtime ${runtime.use} was changed while the run went on: its interpreter or its packages are not those that it began with`,
      todo: advice("Put back what was installed there"),
    };
  }

  /** How the mount differs; null when it does not. */
  private async lookAt(index: number): Promise<string | null> {
    const [mount, expected, seen] = [this.environment.mounts[index], this.expected.mounts[index], this.seen[index]];
    if (mount === undefined || seen === undefined) return null;
    try {
      const quick = quickLook(mount.source);
      const due = !quick.whole && performance.now() >= seen.thoroughAt;
      if (quick.digest === seen.quick && !due) return null;
      const begun = performance.now();
      const now = await digestMount(mount, this.cache);
      if (now !== expected) return "its files are not those that the run began with";
      const took = performance.now() - begun;
      this.seen[index] = { quick: quick.digest, thoroughAt: performance.now() + Math.max(thoroughEveryMs, took * thoroughShare) };
      return null;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      return code === "ENOENT" || code === "ENOTDIR" ? "it is gone" : `it cannot be read: ${message}`;
    }
  }
}

function changedMount(source: string, found: string): Changed {
  return { reason: `the mount ${source} changed while the run went on: ${found}`, todo: advice("Bring it back as it was") };
}

function advice(mend: string): string {
  return `${mend}, then resume; or start a new run. \`trialist resume RUN --frozen\` goes on with it as it is now.`;
}

/** The first entries of a folder, the outer ones first, with all that the kernel says of them. */
function quickLook(root: string): { digest: Digest; whole: boolean } {
  const entries: unknown[] = [];
  const open = [root];
  for (let folder = open.shift(); folder !== undefined; folder = open.shift()) {
    const handle = opendirSync(folder);
    try {
      for (let entry = handle.readSync(); entry !== null; entry = handle.readSync()) {
        if (entries.length >= quickEntries) return { digest: digestOfValue(entries), whole: false };
        const path = join(folder, entry.name);
        const { ino, size, mtimeMs, ctimeMs } = lstatSync(path);
        entries.push([path, ino, size, mtimeMs, ctimeMs]);
        if (entry.isDirectory()) open.push(path);
      }
    } finally {
      handle.closeSync();
    }
  }
  return { digest: digestOfValue(entries), whole: true };
}

/** The mounts whose files are not those of these digests, by their paths on this machine. */
export async function changedMounts(environment: Surrounded, digests: readonly (Digest | null)[], cache: Cache): Promise<string[]> {
  const now = await surroundingsNow({ mounts: environment.mounts, runtime: null }, cache);
  return environment.mounts.filter((_, index) => now.mounts[index] !== digests[index]).map((mount) => mount.source);
}
