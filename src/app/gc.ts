import { rm } from "node:fs/promises";
import { occupiedBytes } from "../adapters/executors/supervisor/disk-usage.js";
import { BlobNeeds, type Overtaken, type ScannedRun } from "../adapters/ledger/blob-needs.js";
import { dropPrunedInline, removeUnneeded, unneededFiles } from "../adapters/ledger/blob-sweep.js";
import { isOwned } from "../adapters/ledger/owner.js";
import { maxInlineBlobBytes } from "../adapters/ledger/run-files.js";
import { TrialistError } from "../core/protocol/errors.js";
import type { Host } from "./environments.js";
import { foldersOfEndedRuns, type KnownRun, leftovers, type UnneededFolder, unusedCache } from "./gc-folders.js";
import { operate } from "./operate.js";
import type { Project } from "./project.js";

export const garbageKinds = ["outputs", "blobs", "folders", "leftovers", "cache"] as const;
export type GarbageKind = (typeof garbageKinds)[number];

export interface GarbageReport {
  /** Whether it was removed; else it would be. */
  readonly removed: boolean;
  readonly kinds: readonly { readonly kind: GarbageKind; readonly items: number; readonly bytes: number }[];
  /** What was left, and why. */
  readonly notes: readonly string[];
}

export interface GarbageRequest {
  readonly remove: boolean;
  /** Null: the cache is left to the other projects that share it. */
  readonly cacheOlderThanMs: number | null;
  /** Blobs younger than that may be about to be named by a run that goes on. */
  readonly youngMs?: number;
}

const defaultYoungMs = 600_000;
const digestsAtOnce = 500;

/**
 * Looks for what nothing needs any more, and removes it when asked to. It may be ended at any moment: what is removed is
 * recorded before, or is named by nothing, and the next look finds the rest.
 */
export async function collectGarbage(project: Project, host: Host, request: GarbageRequest): Promise<GarbageReport> {
  const collection = new Collection(project, host, request);
  try {
    return await collection.run();
  } finally {
    collection.close();
  }
}

interface LookedAtRun extends KnownRun {
  readonly scanned: ScannedRun | null;
}

class Collection {
  private readonly needs: BlobNeeds;
  private readonly counts = new Map<GarbageKind, { items: number; bytes: number }>();
  private readonly notes: string[] = [];
  /** Outputs in files that no run needs once this is done. */
  private readonly overtaken = new Set<string>();
  private readonly now = Date.now();

  constructor(
    private readonly project: Project,
    private readonly host: Host,
    private readonly request: GarbageRequest,
  ) {
    this.needs = new BlobNeeds(project.blobFolder);
  }

  close(): void {
    this.needs.close();
  }

  async run(): Promise<GarbageReport> {
    const runs = this.project.runNames().map((name) => this.lookAt(name));
    for (const run of runs) await this.pruneOutputs(run);
    if (runs.every((run) => run.scanned !== null)) this.sweepBlobs();
    const { cacheOlderThanMs } = this.request;
    await this.sweepFolders([
      ...(await foldersOfEndedRuns(this.host, runs)),
      ...(await leftovers(this.project, this.host, this.now)),
      ...(cacheOlderThanMs === null ? [] : unusedCache(this.host, runs, this.now, cacheOlderThanMs)),
    ]);
    const kinds = garbageKinds.map((kind) => ({ kind, ...(this.counts.get(kind) ?? { items: 0, bytes: 0 }) }));
    return { removed: this.request.remove, kinds, notes: this.notes };
  }

  /** A run that cannot be read may need anything. */
  private lookAt(name: string): LookedAtRun {
    const folder = this.project.existingRun(name);
    const owned = isOwned(folder);
    try {
      const scanned = this.needs.scan(folder);
      return { name, folder, owned, scanned, environmentDigest: scanned.environmentDigest, over: scanned.over };
    } catch (error) {
      if (!(error instanceof TrialistError)) throw error;
      this.notes.push(`${name} cannot be read, so that no blob is removed: ${error.message}`);
      return { name, folder, owned, scanned: null, environmentDigest: null, over: false };
    }
  }

  private async pruneOutputs({ name, folder, owned, scanned }: LookedAtRun): Promise<void> {
    if (scanned === null || scanned.overtaken.length + scanned.prunedInline.length === 0) return;
    if (owned) {
      this.notes.push(`${name} is being worked on: its outputs are left until it stops`);
      return this.keep(scanned.overtaken);
    }
    if (this.request.remove) {
      try {
        await this.prune(name, folder, scanned);
      } catch (error) {
        if (!(error instanceof TrialistError)) throw error;
        this.notes.push(`the outputs of ${name} are left: ${error.message}`);
        return this.keep(scanned.overtaken);
      }
    }
    for (const { digest, bytes } of [...scanned.overtaken, ...scanned.prunedInline]) {
      // Files are found with the other blobs that nothing needs.
      if (bytes > maxInlineBlobBytes) this.overtaken.add(digest);
      else this.count("outputs", bytes);
    }
  }

  /** Recorded first: a gap that the ledger does not list would be damage. */
  private async prune(name: string, folder: string, { overtaken, prunedInline }: ScannedRun): Promise<void> {
    for (let from = 0; from < overtaken.length; from += digestsAtOnce) {
      const digests = overtaken.slice(from, from + digestsAtOnce).map((each) => each.digest);
      await operate(this.project, name, { type: "prune_blobs", digests, reason: "outputs of trials that are not the best (trialist gc)" });
    }
    dropPrunedInline(folder, [...overtaken, ...prunedInline]);
  }

  private keep(blobs: readonly Overtaken[]): void {
    for (const { digest } of blobs) this.needs.keep(digest);
  }

  private sweepBlobs(): void {
    const { youngMs = defaultYoungMs, remove } = this.request;
    const { blobFolder } = this.project;
    let young = 0;
    for (const file of unneededFiles(blobFolder, this.needs, this.now, youngMs)) {
      if (file.young) young += 1;
      else if (!remove || removeUnneeded(blobFolder, file, this.now, youngMs))
        this.count(file.digest !== null && this.overtaken.has(file.digest) ? "outputs" : "blobs", file.bytes);
    }
    if (young > 0)
      this.notes.push(
        `${young} ${young === 1 ? "file of a blob is" : "files of blobs are"} too young to be told from one that is just being named; the next gc looks again`,
      );
  }

  private async sweepFolders(folders: readonly UnneededFolder[]): Promise<void> {
    for (const { kind, path } of folders) {
      const bytes = await occupiedBytes([path], Number.POSITIVE_INFINITY);
      if (this.request.remove) await rm(path, { recursive: true, force: true });
      this.count(kind, Number.isFinite(bytes) ? bytes : 0);
    }
  }

  private count(kind: GarbageKind, bytes: number): void {
    const known = this.counts.get(kind) ?? { items: 0, bytes: 0 };
    this.counts.set(kind, { items: known.items + 1, bytes: known.bytes + bytes });
  }
}
