import { join, relative } from "node:path";
import type { FolderEntry } from "./folder-files.js";
import type { GitFacts } from "./init-git.js";
import { list } from "./init-proposal.js";
import { InitRefusedError } from "./init-refused.js";
import { readSource } from "./init-sources.js";

/** A Git LFS pointer is a text of this size, give or take. */
const pointerBytes = { least: 100, most: 1024 } as const;
const pointerLine = "version https://git-lfs.github.com/spec/v1";
/** Pictures and documents: a program that measures seldom reads them. */
const beside = /\.(png|jpe?g|gif|svg|webp|ico|pdf|mp4|mov|psd|ai|pptx?|docx?|xlsx)$/i;

/** What a person should know about a repository before it is measured. */
export function gitNotes(folder: string, git: GitFacts | null): string[] {
  if (git === null) return [];
  const { root, changed, emptySubmodules } = git;
  return [
    ...(root === folder ? [] : [`the git repository is ${root}: only files below ${relative(root, folder)} are part of the environment`]),
    ...(changed.length === 0 ? [] : [`not committed: ${list(changed)}; what is measured is the files as they lie, not the last commit`]),
    ...(emptySubmodules.length === 0
      ? []
      : [`the submodule ${list(emptySubmodules)} was never checked out and is empty for a program: \`git submodule update --init\``]),
  ];
}

/** @throws InitRefusedError where Git LFS left pointers in place of data: a program would be measured on them */
export async function refusePointers(folder: string, files: readonly FolderEntry[]): Promise<string[]> {
  // Without this attribute there is no Git LFS, and no file has to be opened.
  const attributes = files.filter(({ path }) => path === ".gitattributes" || path.endsWith("/.gitattributes"));
  const texts = await Promise.all(attributes.map(({ path }) => readSource(folder, path)));
  if (!texts.some((text) => /filter=lfs/.test(text))) return [];
  const pointers: string[] = [];
  for (const { path, kind, bytes } of files) {
    if (kind !== "file" || bytes < pointerBytes.least || bytes > pointerBytes.most) continue;
    if ((await readSource(folder, path)).startsWith(pointerLine)) pointers.push(path);
  }
  const data = pointers.filter((path) => !beside.test(path));
  if (data.length === 0) return pointers.length === 0 ? [] : [`Git LFS has not brought ${list(pointers)}`];
  throw new InitRefusedError({
    expected: "files with their content",
    found: `Git LFS pointers in place of ${list(data)}`,
    where: join(folder, data[0] ?? ""),
    todo: "Bring the content with `git lfs pull`, then try again.",
  });
}

const closed: ReadonlySet<string> = new Set(["EROFS", "EACCES", "EPERM", "ENOSPC", "EDQUOT"]);

/** What to say when the folder cannot be written. @throws what is none of a folder's own faults */
export function cannotWrite(folder: string, error: unknown): InitRefusedError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined || !closed.has(code)) throw error;
  return new InitRefusedError(
    {
      expected: "a folder that environment.yaml can be written to",
      found:
        code === "EROFS" ? "a read-only file system" : code === "ENOSPC" || code === "EDQUOT" ? "a full one" : "no permission to write",
      where: folder,
      todo: "Nothing was written. Copy the repository to a place that you can write to, then: trialist init COPY",
    },
    { cause: error },
  );
}
