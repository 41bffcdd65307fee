import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** One folder of the files that a workspace holds beside the candidate. */
export interface ContextFolder {
  readonly folders: ReadonlyMap<string, ContextFolder>;
  /** Name → bytes. */
  readonly files: ReadonlyMap<string, number>;
  /** Of everything below. */
  readonly fileCount: number;
  readonly bytes: number;
}

/** Frozen contexts never change, so each is read once; a process meets few of them. */
const known = new Map<string, ContextFolder>();
const knownAtMost = 4;

/** The tree of a frozen context: names and sizes. */
export function contextTree(folder: string): ContextFolder {
  const found = known.get(folder);
  if (found !== undefined) return found;
  const [oldest] = known.keys();
  if (known.size >= knownAtMost && oldest !== undefined) known.delete(oldest);
  const tree = readTree(folder);
  known.set(folder, tree);
  return tree;
}

function readTree(folder: string): ContextFolder {
  const folders = new Map<string, ContextFolder>();
  const files = new Map<string, number>();
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) folders.set(entry.name, readTree(join(folder, entry.name)));
    else files.set(entry.name, lstatSync(join(folder, entry.name)).size);
  }
  const below = [...folders.values()];
  return {
    folders,
    files,
    fileCount: files.size + below.reduce((sum, each) => sum + each.fileCount, 0),
    bytes: [...files.values(), ...below.map((each) => each.bytes)].reduce((sum, each) => sum + each, 0),
  };
}

/** What the context has in the way of a candidate's file; null when there is room. */
export function inTheWay(tree: ContextFolder, path: string): "a folder" | "a file" | null {
  let folder: ContextFolder | undefined = tree;
  const names = path.split("/");
  for (const [index, name] of names.entries()) {
    if (folder === undefined) return null;
    if (index === names.length - 1) return folder.folders.has(name) ? "a folder" : null;
    if (folder.files.has(name)) return "a file";
    folder = folder.folders.get(name);
  }
  return null;
}
