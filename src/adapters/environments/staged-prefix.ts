import { readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { execa } from "execa";
import type { Mount } from "../../core/ports/executor.js";
import { digestOfValue } from "../../core/protocol/canonical.js";
import { assertReachable, sandboxUser } from "../sandbox/identity.js";
import { withLock } from "./build-lock.js";
import { type Cache, makeOpenFolder } from "./cache.js";
import type { Progress, Runtime } from "./runtime.js";

/**
 * Makes an existing prefix reachable where the sandbox's user cannot get to it: root's own home is closed, and there lie
 * pyenv, conda and uv on most rented machines. Such a folder gets a second name in the cache, made of hard links where the
 * file system allows them (no bytes are copied), and stages see that one at the place of the first.
 */
export async function reachableRuntime(runtime: Runtime, cache: Cache, progress: Progress): Promise<Runtime> {
  if (sandboxUser() === null) return runtime;
  const mounts: Mount[] = [];
  for (const mount of runtime.mounts) mounts.push(isReachable(mount.source) ? mount : await staged(mount, cache, progress));
  return { ...runtime, mounts };
}

function isReachable(folder: string): boolean {
  try {
    assertReachable([join(folder, "bin")]);
    return true;
  } catch {
    return false;
  }
}

async function staged(mount: Mount, cache: Cache, progress: Progress): Promise<Mount> {
  const source = cache.folder("prefixes", await nameOf(mount.source));
  if (await exists(source)) return { ...mount, source };
  await makeOpenFolder(dirname(source));
  const onWait = (): void => progress(`waiting for another process that makes ${mount.source} reachable`);
  await withLock(`${source}.lock`, onWait, async () => {
    if (await exists(source)) return;
    progress(`making ${mount.source} reachable for the sandbox's user (once, by hard links where possible)`);
    await copyTree(mount.source, source);
  });
  return { ...mount, source };
}

/** What tells one state of an installation from the next: its folders' times change with every package that comes or goes. */
async function nameOf(folder: string): Promise<string> {
  const facts = [];
  for (const each of await packageFolders(folder)) {
    const { ino, mtimeMs } = await stat(each);
    facts.push([each, ino, mtimeMs]);
  }
  return digestOfValue({ form: 1, facts }).slice(0, 40);
}

/** The prefix, and the folders of it in which packages are installed. */
async function packageFolders(prefix: string): Promise<string[]> {
  const libraries = await readdir(join(prefix, "lib")).catch(() => []);
  const packages = libraries.filter((name) => name.startsWith("python")).map((name) => join(prefix, "lib", name, "site-packages"));
  const all = [prefix, join(prefix, "bin"), join(prefix, "lib"), join(prefix, "lib", "node_modules"), ...packages];
  const found = await Promise.all(all.map(async (folder) => ((await exists(folder)) ? folder : null)));
  return found.filter((folder) => folder !== null);
}

async function copyTree(from: string, to: string): Promise<void> {
  const draft = `${to}.partial`;
  await rm(draft, { recursive: true, force: true });
  const linked = await execa("cp", ["--archive", "--link", "--", from, draft], { reject: false });
  if (linked.failed) {
    await rm(draft, { recursive: true, force: true });
    await execa("cp", ["--archive", "--reflink=auto", "--", from, draft]);
  }
  await rename(draft, to);
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
