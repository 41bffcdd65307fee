import { utimesSync } from "node:fs";
import { access, chmod, constants, mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { TrialistError } from "../../core/protocol/errors.js";
import { assertReachable } from "../sandbox/identity.js";

/** The cache folder cannot be used. */
export class CacheUnusableError extends TrialistError {
  readonly kind = "infrastructure";
}

/** `empty` stays so: it is shown in place of folders that nobody is to see. */
const kinds = ["environments", "runtimes", "data", "scratch", "executors", "prefixes", "empty", "digests", "calibrations"] as const;
type CacheKind = (typeof kinds)[number];

/**
 * What can be made again: frozen packs, runtimes, prepared data, scratch. `TRIALIST_CACHE`, else `/var/cache/trialist`
 * for root, else `XDG_CACHE_HOME` or `~/.cache`.
 */
export class Cache {
  private constructor(readonly root: string) {}

  /** @throws CacheUnusableError when it cannot be written, or when stages, which run as an unprivileged user under root, could not reach it */
  static async open(environment: Readonly<Record<string, string | undefined>>): Promise<Cache> {
    const root = chosenFolder(environment);
    try {
      for (const kind of kinds) await makeOpenFolder(join(root, kind));
      await access(root, constants.W_OK | constants.X_OK);
    } catch (cause) {
      throw unusable(root, (cause as Error).message, cause);
    }
    try {
      assertReachable([join(root, "scratch")]);
    } catch (cause) {
      throw unusable(root, cause instanceof TrialistError ? cause.facts.found : String(cause), cause);
    }
    return new Cache(root);
  }

  /** Notes that something was used: what nothing used for long may be removed. */
  markUsed(path: string): void {
    try {
      const now = new Date();
      utimesSync(path, now, now);
    } catch {
      // A cache that another user made: whoever may not write it cannot remove from it either.
    }
  }

  folder(kind: CacheKind, name: string): string {
    return join(this.root, kind, name);
  }
}

/** Makes a folder, and those on the way to it, that every user can pass through whatever our umask is. */
export async function makeOpenFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await chmod(made, 0o755);
}

function chosenFolder(environment: Readonly<Record<string, string | undefined>>): string {
  if (environment["TRIALIST_CACHE"]) return resolve(environment["TRIALIST_CACHE"]);
  if (process.getuid?.() === 0) return "/var/cache/trialist";
  const home = environment["XDG_CACHE_HOME"];
  // The specification says that a relative path there is to be ignored.
  return join(home?.startsWith("/") ? home : join(homedir(), ".cache"), "trialist");
}

function unusable(root: string, found: string, cause: unknown): CacheUnusableError {
  return new CacheUnusableError(
    {
      expected: "a cache folder that can be written, and that the user of sandboxed stages can pass through",
      found,
      where: root,
      todo: "Set TRIALIST_CACHE to a folder such as /var/cache/trialist, outside every private home folder.",
    },
    { cause },
  );
}
