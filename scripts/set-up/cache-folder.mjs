import { homedir } from "node:os";
import { join, resolve } from "node:path";

/**
 * Where runtimes, data and tools are kept; the same folder as src/adapters/environments/cache.ts says. For root it lies
 * outside root's closed home, so that a sandbox's unprivileged user can see it.
 */
export function cacheFolder() {
  const chosen = process.env.TRIALIST_CACHE;
  if (chosen) return resolve(chosen);
  if (process.getuid?.() === 0) return "/var/cache/trialist";
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "trialist");
}
