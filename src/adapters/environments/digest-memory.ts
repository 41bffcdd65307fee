import { type BigIntStats, lstatSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { type Digest, digestOf } from "../../core/protocol/canonical.js";
import type { Cache } from "./cache.js";
import { digestFile } from "./file-digest.js";

/** What can be known of a file without reading it. Nobody but the kernel writes the time of a change. */
type Facts = Pick<BigIntStats, "dev" | "ino" | "size" | "mtimeNs" | "ctimeNs">;

/** A file that changed so shortly ago could change again without another time: it is read anew the next time. */
const settledMs = 2000;
/** Younger bytes may be in memory alone: a power loss could take them and leave the times. */
const onDiskMs = 600_000;
const waitingAtMost = 1000;

/**
 * Digests of the files of one tree by device, inode, size and times, kept in the cache, so that only what changed is read
 * again. Whatever cannot be read or written of the memory is as if it were not there: it saves time and decides nothing.
 */
export class DigestMemory {
  private readonly waiting: [place: string, state: string, digest: Digest][] = [];

  private select: Database.Statement<string[], Digest> | null = null;

  private constructor(private database: Database.Database | null) {}

  /** @param root the tree, by which its memory is found again */
  static open(cache: Cache, root: string): DigestMemory {
    const path = cache.folder("digests", `${digestOf(root).slice(0, 40)}.sqlite`);
    const database = opened(path);
    cache.markUsed(path);
    if (database !== null) return new DigestMemory(database);
    rmSync(path, { force: true });
    return new DigestMemory(opened(path));
  }

  /** Digest and size of a regular file, read only when it is not the one that was read before. */
  async digest(path: string): Promise<{ digest: Digest; bytes: number }> {
    const before = lstatSync(path, { bigint: true });
    const known = before.isFile() ? this.known(before) : null;
    if (known !== null) return { digest: known, bytes: Number(before.size) };
    const found = await digestFile(path);
    const after = lstatSync(path, { bigint: true });
    const rested = stateOf(after) === stateOf(before) && placeOf(after) === placeOf(before);
    const ageMs = Date.now() - Number(after.ctimeNs / 1_000_000n);
    if (rested && ageMs > settledMs) this.put(after, found.digest, ageMs > onDiskMs);
    return found;
  }

  /** Digest of a regular file where it is known without reading it; else null. */
  knownOf(path: string): Digest | null {
    const facts = lstatSync(path, { bigint: true });
    return facts.isFile() ? this.known(facts) : null;
  }

  /** Takes in the digest of a file that we wrote ourselves. */
  remember(path: string, digest: Digest): void {
    this.put(lstatSync(path, { bigint: true }), digest, false);
  }

  close(): void {
    this.flush();
    this.database?.close();
    this.database = null;
  }

  private known(facts: Facts): Digest | null {
    return this.guarded((database) => {
      const state = stateOf(facts);
      this.select ??= database.prepare<string[], Digest>("SELECT digest FROM files WHERE place = ? AND state IN (?, ?)").pluck();
      return this.select.get(placeOf(facts), state, inThisBoot(state)) ?? null;
    });
  }

  private put(facts: Facts, digest: Digest, onDisk: boolean): void {
    const state = stateOf(facts);
    this.waiting.push([placeOf(facts), onDisk ? state : inThisBoot(state), digest]);
    if (this.waiting.length >= waitingAtMost) this.flush();
  }

  private flush(): void {
    const rows = this.waiting.splice(0);
    if (rows.length === 0) return;
    this.guarded((database) => {
      const insert = database.prepare("INSERT OR REPLACE INTO files VALUES (?, ?, ?)");
      database.transaction(() => rows.forEach((row) => void insert.run(...row)))();
      return null;
    });
  }

  private guarded<T>(work: (database: Database.Database) => T): T | null {
    if (this.database === null) return null;
    try {
      return work(this.database);
    } catch (error) {
      if (!(error instanceof Database.SqliteError)) throw error;
      this.database.close();
      this.database = null;
      return null;
    }
  }
}

function placeOf({ dev, ino }: Facts): string {
  return `${dev}:${ino}`;
}

function stateOf({ size, mtimeNs, ctimeNs }: Facts): string {
  return `${size}:${mtimeNs}:${ctimeNs}`;
}

const boot = bootId();

function inThisBoot(state: string): string {
  return `${state}:${boot}`;
}

function bootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return `${process.pid}-${Date.now()}`;
  }
}

function opened(path: string): Database.Database | null {
  let database: Database.Database | null = null;
  try {
    mkdirSync(dirname(path), { recursive: true });
    database = new Database(path, { timeout: 5000 });
    database.exec("CREATE TABLE IF NOT EXISTS files (place TEXT PRIMARY KEY, state TEXT, digest TEXT) WITHOUT ROWID");
    return database;
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error;
    database?.close();
    return null;
  }
}
