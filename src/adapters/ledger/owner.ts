import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { basename, resolve } from "node:path";
import SqliteDatabase, { type Database } from "better-sqlite3";
import { z } from "zod";
import { TrialistError } from "../../core/protocol/errors.js";
import { lockPath, makeDurableFolder, ownerInfoPath } from "./run-files.js";
import { withTypedFailures } from "./sqlite-failures.js";

const ownerInfo = z.strictObject({
  run: z.string().max(200),
  pid: z.number().int().positive(),
  host: z.string().max(300),
  /** Names one boot of the host; null where the system has none. A pid means something only within it. */
  bootId: z.string().max(100).nullable(),
  /** When the run was taken, in milliseconds since 1970. */
  since: z.number().int(),
});

/** Who owns a run, for people. Whether somebody owns it is decided by the lock alone, never by this. */
export type OwnerInfo = z.infer<typeof ownerInfo>;

/** Another process owns the run. */
export class RunOwnedError extends TrialistError {
  readonly kind = "refused";
  constructor(
    readonly run: string,
    readonly owner: OwnerInfo | null,
    where: string,
    options?: { cause?: unknown },
  ) {
    const who = owner === null ? "another process" : `process ${owner.pid} on ${owner.host} since ${new Date(owner.since).toISOString()}`;
    const facts = {
      expected: `run ${run} to have no owner`,
      found: `that it is owned by ${who}`,
      where,
      todo: `Use \`trialist pause ${run} --reason …\` to stop it, or wait until it ends.`,
    };
    super(facts, options);
  }
}

/**
 * Ownership of a run: an exclusive lock on the file `lock`, which the kernel frees when the process dies, however it dies.
 * SQLite takes the lock (a POSIX record lock), since Node has none of its own; child processes do not inherit it.
 */
export class Ownership {
  readonly #epochs = new Map<string, number>();
  #lock: Database | null;

  private constructor(
    readonly runFolder: string,
    readonly info: OwnerInfo,
    lock: Database,
  ) {
    this.#lock = lock;
    living.add(this);
  }

  /** Takes the run or refuses at once; makes the folder when it is missing. @throws RunOwnedError */
  static acquire(runFolder: string, run: string = basename(resolve(runFolder))): Ownership {
    withTypedFailures(runFolder, () => makeDurableFolder(runFolder));
    const lock = lockExclusively(runFolder, run);
    const info: OwnerInfo = { run, pid: process.pid, host: hostname(), bootId: bootId(), since: Date.now() };
    try {
      withTypedFailures(runFolder, () => publish(runFolder, info));
    } catch (error) {
      lock.close();
      throw error;
    }
    return new Ownership(runFolder, info, lock);
  }

  get held(): boolean {
    return this.#lock !== null;
  }

  /**
   * The epoch under which this owner writes to a ledger: one more than the owner before, the same one however often this
   * owner opens it. Every append compares it, so an owner that lost its lock (a removed lock file) can do no harm.
   */
  epochIn(db: Database): number {
    const known = this.#epochs.get(db.name);
    if (known !== undefined) return known;
    const raise = db.prepare<[], number>("UPDATE head SET epoch = epoch + 1 RETURNING epoch").pluck();
    // Without a transaction of its own, a commit that fails (a full disk) would pass in silence: it happens after the row was read.
    const epoch = withTypedFailures(db.name, () => db.transaction(() => raise.get()).immediate());
    if (epoch === undefined) throw new Error(`${db.name}: the table head has no row`);
    this.#epochs.set(db.name, epoch);
    return epoch;
  }

  /** Lets the run go. A second call does nothing. */
  release(): void {
    if (this.#lock === null) return;
    rmSync(ownerInfoPath(this.runFolder), { force: true });
    this.#lock.close();
    this.#lock = null;
    living.delete(this);
  }
}

/** Holds every ownership reachable: a collected lock would be a freed one. */
const living = new Set<Ownership>();

/** Takes ownership of a run. @throws RunOwnedError */
export function acquireOwner(runFolder: string, run?: string): Ownership {
  return Ownership.acquire(runFolder, run);
}

/** Whether some process, this one included, owns the run right now. */
export function isOwned(runFolder: string): boolean {
  const path = lockPath(runFolder);
  if (!existsSync(path)) return false;
  const probe = withTypedFailures(path, () => new SqliteDatabase(path, { readonly: true, timeout: 0 }));
  try {
    probe.prepare("SELECT count(*) FROM sqlite_master").get();
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    probe.close();
  }
}

/** Who owns the run, as far as it says; null when it does not, or when the record is of a process that is gone. */
export function readOwnerInfo(runFolder: string): OwnerInfo | null {
  try {
    const info = ownerInfo.parse(JSON.parse(readFileSync(ownerInfoPath(runFolder), "utf8")));
    return isGone(info) ? null : info;
  } catch {
    return null;
  }
}

function lockExclusively(runFolder: string, run: string): Database {
  const path = lockPath(runFolder);
  const lock = withTypedFailures(path, () => new SqliteDatabase(path, { timeout: 250 }));
  try {
    lock.pragma("locking_mode = EXCLUSIVE");
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    lock.close();
    if (isBusy(error)) throw new RunOwnedError(run, readOwnerInfo(runFolder), path, { cause: error });
    return withTypedFailures(path, () => {
      throw error;
    });
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof SqliteDatabase.SqliteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code);
}

function publish(runFolder: string, info: OwnerInfo): void {
  const path = ownerInfoPath(runFolder);
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(info)}\n`);
  renameSync(temporary, path);
}

/** A record of this boot of this host whose process no longer exists. */
function isGone(info: OwnerInfo): boolean {
  if (info.host !== hostname() || info.bootId !== bootId()) return info.host === hostname();
  try {
    process.kill(info.pid, 0);
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH";
  }
}

function bootId(): string | null {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return null;
  }
}
