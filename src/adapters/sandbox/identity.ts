import { chmodSync, chownSync, lchownSync, lstatSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { UnreachableMountError } from "./errors.js";

/**
 * The real user of every sandboxed process when trialist itself runs as root. One id for all: files that belong to it
 * can be mounted read-write into any later stage without knowing who made them, and what keeps two executions apart is
 * their mounts and their process namespaces, not their user. Nothing on a normal machine owns this id.
 */
export const sandboxUserId = 60_000;

/** The user that sandboxed processes really run as, or null when that is simply ours. */
export function sandboxUser(): { readonly uid: number; readonly gid: number } | null {
  return process.getuid?.() === 0 ? { uid: sandboxUserId, gid: sandboxUserId } : null;
}

/** Entries handed over in one go: a small tree is done at once, a large one lets others run in between. */
const entriesAtOnce = 256;

/**
 * Makes a folder tree writable for the sandbox: call it on every workspace and output folder after filling it.
 * Links themselves change hands, never what they point at. Without root there is nothing to hand over, only the owner's
 * permissions are completed.
 */
export async function giveToSandbox(path: string): Promise<void> {
  const user = sandboxUser();
  let given = 0;
  for (const entry of giving(path, user)) {
    given += 1;
    if (given % entriesAtOnce === 0) await turnOfTheLoop(entry);
  }
}

/** Hands over one entry after the other, what lies inside before the folder. */
function* giving(path: string, user: ReturnType<typeof sandboxUser>): Generator<string, void, undefined> {
  const entry = lstatSync(path);
  if (entry.isSymbolicLink()) {
    if (user !== null) lchownSync(path, user.uid, user.gid);
    return yield path;
  }
  // A file with a second name is somebody else's too.
  if (entry.isFile() && entry.nlink > 1) return yield path;
  const wanted = (entry.mode & 0o7777 & ~0o7000) | (entry.isDirectory() ? 0o755 : 0o644);
  if ((entry.mode & 0o7777) !== wanted) chmodSync(path, wanted);
  if (entry.isDirectory()) {
    for (const name of readdirSync(path)) yield* giving(join(path, name), user);
  }
  if (user !== null && (entry.uid !== user.uid || entry.gid !== user.gid)) chownSync(path, user.uid, user.gid);
  yield path;
}

function mayEnter(entry: { uid: number; gid: number; mode: number }, user: { uid: number; gid: number }): boolean {
  if (entry.uid === user.uid) return (entry.mode & 0o100) !== 0;
  if (entry.gid === user.gid) return (entry.mode & 0o010) !== 0;
  return (entry.mode & 0o001) !== 0;
}

/**
 * Checks that the sandbox's user can get to each path, so that a closed folder on the way is named here and not in
 * bubblewrap's terse words after the fact.
 */
export function assertReachable(paths: readonly string[]): void {
  const user = sandboxUser();
  const entered = new Set<string>();
  for (const path of paths) {
    try {
      statSync(path);
    } catch (cause) {
      throw new UnreachableMountError(
        {
          where: path,
          expected: "an existing file or folder, because the stage mounts it",
          found: (cause as NodeJS.ErrnoException).code ?? String(cause),
          todo: "Create it, or correct the mount in the environment.",
        },
        { cause },
      );
    }
    if (user === null) continue;
    for (let folder = dirname(path); !entered.has(folder); folder = dirname(folder)) {
      entered.add(folder);
      const entry = statSync(folder);
      if (mayEnter(entry, user)) continue;
      throw new UnreachableMountError({
        where: path,
        expected: `that the sandbox's user ${user.uid} may enter every folder on the way (permission x)`,
        found: `${folder} has mode ${(entry.mode & 0o777).toString(8)} and belongs to user ${entry.uid}`,
        todo: `Keep the cache outside such folders (for example under /var/cache/trialist), or run: chmod o+x ${folder}`,
      });
    }
  }
}
