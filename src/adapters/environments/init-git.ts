import { readdir, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { execa } from "execa";

/** What git knows about a folder that becomes an environment. */
export interface GitFacts {
  /** Top of the work tree; the folder may lie below it. */
  readonly root: string;
  /** Paths, relative to the folder, that differ from the last commit or are not in git yet. */
  readonly changed: readonly string[];
  /** What git ignores, relative to the folder; a folder ends with `/` and stands for all that is in it. */
  readonly ignored: readonly string[];
  /** Submodules that were never checked out. */
  readonly emptySubmodules: readonly string[];
}

const outputBytes = 64 * 2 ** 20;

/** Asks git about a folder; null outside a repository, or where git is not installed. Three processes, however many files there are. */
export async function lookAtGit(folder: string): Promise<GitFacts | null> {
  const root = await git(folder, ["rev-parse", "--show-toplevel"]);
  if (root === null || root.trim() === "") return null;
  const top = root.replace(/\n$/, "");
  const [status, ignored, staged] = await Promise.all([
    git(folder, ["status", "--porcelain", "-z", "--untracked-files=normal", "--", "."]),
    git(folder, ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"]),
    git(folder, ["ls-files", "-z", "--stage"]),
  ]);
  const emptySubmodules: string[] = [];
  for (const path of submodulesIn(staged ?? "")) if (await isEmpty(join(folder, path))) emptySubmodules.push(path);
  return {
    root: top,
    changed: changedIn(status ?? "").map((path) => relative(folder, join(top, path))),
    ignored: (ignored ?? "").split("\0").filter((path) => path !== ""),
    emptySubmodules,
  };
}

/** Nothing of the repository's own configuration may run a program here, and nothing is written into it. */
async function git(folder: string, words: readonly string[]): Promise<string | null> {
  const settings = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*", "-c", "core.quotePath=false"];
  const variables = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_")));
  const asked = await execa("git", [...settings, "-C", folder, ...words], {
    reject: false,
    extendEnv: false,
    env: { ...variables, GIT_OPTIONAL_LOCKS: "0" },
    stdin: "ignore",
    maxBuffer: outputBytes,
    stripFinalNewline: false,
  });
  return asked.failed ? null : asked.stdout;
}

/** `XY path`, and for a rename the old path behind it. */
function changedIn(status: string): string[] {
  const changed: string[] = [];
  const words = status.split("\0");
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word.length < 4) continue;
    changed.push(word.slice(3));
    if (/^[RC]|^.[RC]/.test(word)) at += 1;
  }
  return changed;
}

/** Entries of mode 160000: `160000 DIGEST STAGE\tPATH`. */
function submodulesIn(staged: string): string[] {
  return staged.split("\0").flatMap((line) => (line.startsWith("160000 ") ? [line.slice(line.indexOf("\t") + 1)] : []));
}

async function isEmpty(folder: string): Promise<boolean> {
  const facts = await stat(folder).catch(() => null);
  return facts === null || !facts.isDirectory() || (await readdir(folder)).length === 0;
}
