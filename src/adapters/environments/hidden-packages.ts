import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Mount } from "../../core/ports/executor.js";
import type { Cache } from "./cache.js";

/**
 * Mounts that empty the folders of packages which were installed for the system's own Python and R. Every stage sees /usr,
 * and a data set that a package carries may be the answers that an environment asks for; a frozen runtime needs none of it.
 */
export function hiddenSystemPackages(cache: Cache): Mount[] {
  const empty = cache.folder("empty", "");
  return packageFolders().map((target) => ({ source: empty, target, mode: "read-only" }));
}

function packageFolders(): string[] {
  const libraries = ["/usr/lib", "/usr/local/lib"];
  const python = libraries.flatMap((library) =>
    entriesOf(library)
      .filter((name) => /^python3(\.\d+)?$/.test(name))
      .flatMap((name) => ["dist-packages", "site-packages"].map((packages) => join(library, name, packages))),
  );
  const r = libraries.flatMap((library) => ["library", "site-library"].map((packages) => join(library, "R", packages)));
  return [...python, ...r].filter((folder) => existsSync(folder));
}

function entriesOf(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
