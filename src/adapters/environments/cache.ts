import { mkdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { TrialistError } from "../../core/protocol/errors.js";

/** The cache folder cannot be used. */
export class CacheUnusableError extends TrialistError {
  readonly kind = "infrastructure";
}

/**
 * What can be made again: frozen packs, runtimes, prepared data, scratch. `TRIALIST_CACHE`, else `/var/cache/trialist`
 * for root, else `XDG_CACHE_HOME` or `~/.cache`.
 */
export class Cache {
  private constructor(readonly root: string) {}

  /** @throws CacheUnusableError when stages, which run as an unprivileged user under root, could not reach it */
  static async open(environment: Readonly<Record<string, string | undefined>>): Promise<Cache> {
    const root = resolve(environment.TRIALIST_CACHE ?? defaultFolder(environment));
    await mkdir(root, { recursive: true, mode: 0o755 });
    for (const name of ["environments", "runtimes", "data", "scratch", "executors"]) await mkdir(join(root, name), { recursive: true, mode: 0o755 });
    if (process.getuid?.() === 0) await assertTraversable(root);
    return new Cache(root);
  }

  folder(kind: "environments" | "runtimes" | "data" | "scratch" | "executors", name: string): string {
    return join(this.root, kind, name);
  }
}

function defaultFolder(environment: Readonly<Record<string, string | undefined>>): string {
  if (process.getuid?.() === 0) return "/var/cache/trialist";
  return join(environment.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "trialist");
}

async function assertTraversable(folder: string): Promise<void> {
  for (let path = folder; path !== dirname(path); path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) {
      throw new CacheUnusableError({
        expected: "a cache folder that every user can pass through, since under root stages run as an unprivileged user",
        found: `${path}, which others cannot enter`,
        where: folder,
        todo: "Set TRIALIST_CACHE to a folder such as /var/cache/trialist.",
      });
    }
  }
}
