import { type Dirent, lstatSync, readdirSync, type Stats } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { execa } from "execa";
import { RefusedError } from "../../core/protocol/errors.js";

/** One thing below a folder, by its relative path with `/`. */
export interface FolderEntry {
  readonly path: string;
  readonly kind: "file" | "link" | "other";
  readonly bytes: number;
  readonly executable: boolean;
}

/** Folders that are made by tools and are never part of an environment. */
const toolFolders: ReadonlySet<string> = new Set([
  ...[".git", ".hg", ".svn", ".trialist", "node_modules", "__pycache__", ".venv", ".tox", ".nox"],
  ...[".mypy_cache", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"],
]);

/** What is left out even where files are named by hand: history, runs, and bytecode that differs from machine to machine. */
export const alwaysSkipped: ReadonlySet<string> = new Set([".git", ".trialist", "__pycache__"]);

/** The project's own file beside an environment: who proposes is no part of what is measured. */
const ownConfiguration = "trialist.config.yaml";

/** Most entries that are looked at; more than that is not a pack but a disk. */
const maxEntries = 500_000;
/** Entries looked at in one go: asking the thread pool for each would take ten times as long. */
const entriesAtOnce = 1000;

/** Everything below a folder, ordered by path; links are named, never followed. */
export async function listFolder(folder: string, skip: ReadonlySet<string> = toolFolders): Promise<FolderEntry[]> {
  const found: FolderEntry[] = [];
  let looked = 0;
  const visit = async (relative: string): Promise<void> => {
    for (const entry of await entriesOf(join(folder, relative))) {
      const path = relative === "" ? entry.name : `${relative}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!skip.has(entry.name)) await visit(path);
        continue;
      }
      // A submodule and a second work tree have a file of that name.
      if (entry.name === ".git" && skip.has(entry.name)) continue;
      if (found.length >= maxEntries) {
        throw new RefusedError({
          expected: `at most ${maxEntries} files`,
          found: "more",
          where: folder,
          todo: "Name the ones that matter in a folder of their own.",
        });
      }
      // A name that is not UTF-8 cannot be looked up by the text that it was turned into; it is listed, to be refused.
      const unreadable: FolderEntry | null = entry.name.includes("\ufffd") ? { path, kind: "other", bytes: 0, executable: false } : null;
      const facts = entryAt(folder, path) ?? unreadable;
      looked += 1;
      if (looked % entriesAtOnce === 0) await turnOfTheLoop();
      if (facts !== null && !isLitter(entry.name) && path !== ownConfiguration) found.push(facts);
    }
  };
  await visit("");
  return inOrder(found);
}

/** @throws RefusedError for a folder that cannot be read: what lies in it is not known */
function entriesOf(folder: string): Promise<Dirent[]> {
  return readdir(folder, { withFileTypes: true }).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== "EACCES" && cause.code !== "EPERM") throw cause;
    throw new RefusedError(
      { expected: "a folder that can be read", found: cause.code, where: folder, todo: "Let this user read it, or move it elsewhere." },
      { cause },
    );
  });
}

/**
 * Everything below a folder in the order of `listFolder`, one entry at a time, however many there are; nothing is skipped
 * but litter and the project's own file.
 */
export function* walkFolder(root: string, relative = ""): Generator<FolderEntry & { readonly mtimeMs: number }> {
  // Paths are ordered as wholes: a folder's name counts with the slash that follows it.
  const named = readdirSync(join(root, relative), { withFileTypes: true }).map((entry) => ({
    entry,
    key: entry.isDirectory() ? `${entry.name}/` : entry.name,
  }));
  for (const { entry } of named.sort((a, b) => (a.key < b.key ? -1 : 1))) {
    const path = relative === "" ? entry.name : `${relative}/${entry.name}`;
    if (entry.isDirectory()) yield* walkFolder(root, path);
    else if (!isLitter(entry.name) && path !== ownConfiguration) {
      const facts = factsAt(join(root, path));
      const found = entryAt(root, path) ?? { path, kind: "other", bytes: 0, executable: false };
      yield { ...found, mtimeMs: facts?.mtimeMs ?? 0 };
    }
  }
}

/** The files of a folder in a git work tree that git does not ignore; null outside git, or where git is not installed. */
export async function listUnignored(folder: string): Promise<FolderEntry[] | null> {
  // Nothing of the repository's own configuration may run a program here.
  const settings = ["-c", "core.fsmonitor=false", "-c", "safe.directory=*", "-c", "core.quotePath=false"];
  const variables = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_")));
  const listed = await execa("git", [...settings, "-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    reject: false,
    extendEnv: false,
    env: variables,
    maxBuffer: 64 * 2 ** 20,
    stripFinalNewline: false,
  });
  if (listed.failed) return null;
  const paths = new Set(listed.stdout.split("\0").filter((path) => path !== ""));
  const found: FolderEntry[] = [];
  for (const path of paths) {
    const parts = path.split("/");
    if (parts.some((part) => toolFolders.has(part)) || isLitter(parts.at(-1) ?? "")) continue;
    const entry = entryAt(folder, path);
    if (entry !== null) found.push(entry);
    else found.push(...(await listNested(folder, path.replace(/\/$/, ""))));
    if (found.length % entriesAtOnce === 0) await turnOfTheLoop();
  }
  return inOrder(found);
}

/** The files of a repository inside the repository, which git names by its folder: a submodule, or one that lies there. */
async function listNested(folder: string, path: string): Promise<FolderEntry[]> {
  // Without a `.git` of its own it is an empty folder, and git would list the outer repository again.
  if (factsAt(join(folder, path, ".git")) === null) return [];
  const nested = (await listUnignored(join(folder, path))) ?? [];
  return nested.map((entry) => ({ ...entry, path: `${path}/${entry.path}` }));
}

/** One entry; null when it is gone, or a folder (git names a submodule so). */
export function entryAt(folder: string, path: string): FolderEntry | null {
  const facts = factsAt(join(folder, path));
  if (facts === null || facts.isDirectory()) return null;
  const kind = facts.isFile() ? "file" : facts.isSymbolicLink() ? "link" : "other";
  return { path, kind, bytes: facts.size, executable: (facts.mode & 0o111) !== 0 };
}

function factsAt(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

function isLitter(name: string): boolean {
  return name === ".DS_Store" || name.endsWith(".pyc");
}

/** Orders by path in code units, so that every machine lists the same. */
function inOrder(entries: FolderEntry[]): FolderEntry[] {
  return entries.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}
