import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, type Stats, statfsSync, statSync } from "node:fs";
import { join } from "node:path";

const entriesAtOnce = 500;
const descriptorsAtMost = 4096;
/** What an empty file costs all the same; otherwise a million of them would count as nothing. */
const bytesPerEntry = 512;
const tmpfsMagic = 0x01021994;
const blockBytes = 512;

/**
 * Bytes that folders occupy, not the lengths of their files: a sparse terabyte occupies nothing. A folder that cannot
 * be measured (made unreadable, or nested deeper than a path can be long) counts as infinite, because what cannot be
 * measured cannot be limited. Stops once `enough` is passed.
 */
export async function occupiedBytes(folders: readonly string[], enough: number): Promise<number> {
  const seen = new Set<string>();
  const open = [...folders];
  let total = 0;
  let sinceBreak = 0;
  for (let folder = open.pop(); folder !== undefined && total <= enough; folder = open.pop()) {
    const names = namesIn(folder);
    if (names === null) return Number.POSITIVE_INFINITY;
    for (const name of names) {
      const path = join(folder, name);
      const entry = statOrNull(path);
      if (entry === "too long") return Number.POSITIVE_INFINITY;
      if (entry === null || alreadySeen(entry, seen)) continue;
      total += Math.max(bytesPerEntry, entry.blocks * blockBytes);
      if (entry.isDirectory()) open.push(path);
      sinceBreak += 1;
    }
    if (sinceBreak > entriesAtOnce) {
      sinceBreak = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  return total;
}

function namesIn(folder: string): string[] | null {
  try {
    return readdirSync(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? [] : null;
  }
}

function statOrNull(path: string): Stats | "too long" | null {
  try {
    return lstatSync(path);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENAMETOOLONG" ? "too long" : null;
  }
}

function alreadySeen(entry: Stats, seen: Set<string>): boolean {
  if (entry.nlink < 2 || entry.isDirectory()) return false;
  const name = `${entry.dev}:${entry.ino}`;
  if (seen.has(name)) return true;
  seen.add(name);
  return false;
}

/** Bytes of files that were deleted and are still held open, which no walk through folders can see. */
export function deletedOpenBytes(pids: readonly number[], folders: readonly string[]): number {
  const devices = new Set(folders.flatMap((folder) => statOrZero(folder)?.dev ?? []));
  const seen = new Set<string>();
  let total = 0;
  let looked = 0;
  for (const pid of pids) {
    for (const descriptor of namesIn(`/proc/${pid}/fd`) ?? []) {
      looked += 1;
      if (looked > descriptorsAtMost) return total;
      const file = statOrZero(`/proc/${pid}/fd/${descriptor}`);
      if (file === null || file.nlink > 0 || !file.isFile() || !devices.has(file.dev)) continue;
      const name = `${file.dev}:${file.ino}`;
      if (!seen.has(name)) total += file.blocks * blockBytes;
      seen.add(name);
    }
  }
  return total;
}

function statOrZero(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

/**
 * The temporary folders of a sandbox. They live in memory and vanish with its last process, so a descriptor is kept on
 * each: how full they were can then still be told after the end.
 */
export class TemporaryFolders {
  private readonly held = new Map<string, number>();

  constructor(private readonly sizeBytes: number) {}

  /** Tries to get hold of them; before bubblewrap has set up its root there is nothing of ours to be found. */
  hold(init: number | null): void {
    if (init === null || this.held.size === 2) return;
    for (const path of ["tmp", "dev/shm"]) {
      if (this.held.has(path)) continue;
      try {
        const descriptor = openSync(`/proc/${init}/root/${path}`, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
        if (this.isOurs(descriptor)) this.held.set(path, descriptor);
        else closeSync(descriptor);
      } catch {
        // Not there yet, already gone, or not ours to look at.
      }
    }
  }

  private isOurs(descriptor: number): boolean {
    const found = statfsSync(`/proc/self/fd/${descriptor}`);
    const pages = Math.ceil(this.sizeBytes / found.bsize);
    return found.type === tmpfsMagic && found.blocks === pages && fstatSync(descriptor).isDirectory();
  }

  usage(): { bytes: number; full: boolean } {
    let bytes = 0;
    let full = false;
    for (const descriptor of this.held.values()) {
      const found = statfsSync(`/proc/self/fd/${descriptor}`);
      bytes += (found.blocks - found.bfree) * found.bsize;
      full ||= found.bfree === 0 || found.ffree === 0;
    }
    return { bytes, full };
  }

  release(): void {
    for (const descriptor of this.held.values()) closeSync(descriptor);
    this.held.clear();
  }
}
