import { lstat, readdir, readlink, realpath } from "node:fs/promises";
import { join, resolve, sep } from "node:path";

/** One thing below a folder, by its relative path with `/`. */
export interface FolderEntry {
  readonly path: string;
  readonly kind: "file" | "link" | "other";
  readonly bytes: number;
  readonly executable: boolean;
}

const skippedFolders = new Set([".git", ".trialist", "node_modules", "__pycache__", ".venv"]);

/** Most entries that a pack or a repository may hold for now. */
const maxEntries = 50_000;

/** Everything below a folder, ordered by path; links are named, never followed. */
export async function listFolder(folder: string, skip: ReadonlySet<string> = skippedFolders): Promise<FolderEntry[]> {
  const found: FolderEntry[] = [];
  const visit = async (relative: string): Promise<void> => {
    for (const entry of await readdir(join(folder, relative), { withFileTypes: true })) {
      const path = relative === "" ? entry.name : `${relative}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!skip.has(entry.name)) await visit(path);
        continue;
      }
      if (found.length >= maxEntries) throw new RangeError(`${folder} holds more than ${maxEntries} files; name the ones that matter in a pack of their own`);
      const facts = await lstat(join(folder, path));
      found.push({ path, kind: facts.isFile() ? "file" : facts.isSymbolicLink() ? "link" : "other", bytes: facts.size, executable: (facts.mode & 0o111) !== 0 });
    }
  };
  await visit("");
  return found.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Where a link leads, when that is outside the folder; null when it stays inside. */
export async function leadsOutside(folder: string, path: string): Promise<string | null> {
  const root = await realpath(folder);
  const target = await realpath(join(folder, path)).catch(async () => resolve(join(folder, path), "..", await readlink(join(folder, path))));
  return target === root || target.startsWith(root + sep) ? null : target;
}
