import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";

/**
 * Holds a lock while `work` runs. The kernel frees it when the process dies, so that nobody waits for a dead builder:
 * it is SQLite's lock on an otherwise empty file, which Node's own library has no equal of.
 */
export async function withLock<T>(path: string, onWait: () => void, work: () => Promise<T>): Promise<T> {
  const database = new Database(path, { timeout: 0 });
  try {
    for (let tries = 0; !tryLock(database); tries++) {
      if (tries === 0) onWait();
      await sleep(250);
    }
    return await work();
  } finally {
    if (database.inTransaction) database.exec("ROLLBACK");
    database.close();
  }
}

function tryLock(database: Database.Database): boolean {
  try {
    database.exec("BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith("SQLITE_BUSY")) return false;
    throw error;
  }
}
