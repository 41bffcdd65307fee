import { constants, type Dirent, type Stats } from "node:fs";
import { chmod, lstat, mkdir, open, readdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import picomatch from "picomatch";
import type { StageExecution } from "../../../core/ports/executor.js";
import type { DeclaredOutput } from "../../../core/protocol/outcome.js";

const matchesAtMost = 10_000;
const entriesAtMost = 1_000_000;
const blockBytes = 512;
const chunkBytes = 1 << 20;

type Wanted = Pick<StageExecution, "outputFolder" | "outputs" | "collectInto" | "collectMaxBytes"> & {
  /** Bytes that all copies together may have. */
  readonly totalMaxBytes: number;
};

interface Entry {
  readonly path: string;
  readonly kind: "file" | "folder" | "other";
}

/**
 * Copies what a stage declared as its outputs. Everything in that folder was made by code that nobody trusts: only
 * plain files are read, through a descriptor that was examined, and never through a link.
 */
export async function collectOutputs(wanted: Wanted): Promise<DeclaredOutput[]> {
  const { outputFolder, collectInto, outputs } = wanted;
  if (outputFolder === null || collectInto === null || outputs.length === 0) return [];
  await mkdir(collectInto, { recursive: true });
  // Another sandbox shall read the copies; that it cannot write them follows from their owner.
  await chmod(collectInto, 0o755);
  const entries = await entriesBelow(outputFolder);
  const declared: DeclaredOutput[] = [];
  const taken = new Set<string>();
  let left = wanted.totalMaxBytes;
  for (const glob of outputs) {
    const matches = matching(glob, entries);
    if (matches.length === 0) declared.push(nothingFor(glob, entries));
    if (matches.length > matchesAtMost) declared.push({ path: glob, state: "too_large", bytes: 0, found: `${matches.length} files` });
    for (const entry of matches.slice(0, matchesAtMost)) {
      if (taken.has(entry.path)) continue;
      taken.add(entry.path);
      const output = await collectOne(outputFolder, collectInto, entry.path, wanted.collectMaxBytes, left);
      if (output.state === "present") left -= output.bytes;
      declared.push(output);
    }
  }
  return declared;
}

/** All entries, in the order of their names; links are listed and never followed. */
async function entriesBelow(root: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  const folders = [""];
  for (let folder = folders.shift(); folder !== undefined && entries.length < entriesAtMost; folder = folders.shift()) {
    let found: Dirent[];
    try {
      found = await readdir(join(root, folder), { withFileTypes: true });
    } catch {
      continue;
    }
    for (const each of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = folder === "" ? each.name : `${folder}/${each.name}`;
      entries.push({ path, kind: each.isFile() ? "file" : each.isDirectory() ? "folder" : "other" });
      if (each.isDirectory()) folders.push(path);
    }
  }
  return entries;
}

/** A pattern matches folders only when it names one: the folders that `models/**` passes through are no outputs. */
function matching(glob: string, entries: readonly Entry[]): Entry[] {
  const matches = picomatch(glob, { dot: true });
  const plain = !picomatch.scan(glob).isGlob;
  return entries.filter((entry) => (plain ? entry.path === glob : entry.kind !== "folder" && matches(entry.path)));
}

function nothingFor(glob: string, entries: readonly Entry[]): DeclaredOutput {
  const closed = entries.find((entry) => entry.kind === "other" && glob.startsWith(`${entry.path}/`));
  if (closed === undefined) return { path: glob, state: "missing", bytes: 0 };
  return { path: glob, state: "not_a_regular_file", bytes: 0, found: `its folder ${closed.path} is a link` };
}

async function collectOne(from: string, into: string, path: string, maxBytes: number, left: number): Promise<DeclaredOutput> {
  const refuse = (state: DeclaredOutput["state"], bytes: number, found: string): DeclaredOutput => ({ path, state, bytes, found });
  let entry: Stats;
  try {
    entry = await lstat(join(from, path));
  } catch (error) {
    return refuse("not_a_regular_file", 0, `unreadable: ${(error as NodeJS.ErrnoException).code}`);
  }
  if (!entry.isFile()) return refuse("not_a_regular_file", 0, kindOf(entry));
  let source: Awaited<ReturnType<typeof open>>;
  try {
    source = await open(join(from, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    return refuse("not_a_regular_file", 0, `unreadable: ${(error as NodeJS.ErrnoException).code}`);
  }
  try {
    // From here on only what the descriptor leads to counts; the name may lead elsewhere by now.
    const file = await source.stat();
    if (!file.isFile()) return refuse("not_a_regular_file", 0, kindOf(file));
    if (file.nlink !== 1) return refuse("not_a_regular_file", file.size, `${file.nlink} hard links`);
    const occupied = file.blocks * blockBytes;
    if (file.size > maxBytes) {
      const sparse = occupied < file.size / 2;
      return refuse(
        sparse ? "sparse" : "too_large",
        file.size,
        sparse ? `${file.size} bytes of which ${occupied} exist` : `${file.size} bytes`,
      );
    }
    if (file.size > left) return refuse("too_large", file.size, "more bytes in all outputs together than the disk limit allows");
    return { path, state: "present", bytes: await copy(source, join(into, path), file.size) };
  } finally {
    await source.close();
  }
}

function kindOf(entry: Stats): string {
  if (entry.isSymbolicLink()) return "a symbolic link";
  if (entry.isFIFO()) return "a FIFO";
  if (entry.isSocket()) return "a socket";
  if (entry.isDirectory()) return "a folder";
  return "a device";
}

/** Copies at most as many bytes as the file was seen to have, and says how many those were. */
async function copy(source: Awaited<ReturnType<typeof open>>, target: string, size: number): Promise<number> {
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  // An earlier stage of the same attempt may have had an output of this name; the latest counts.
  await rm(target, { force: true });
  const copied = await open(target, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o644);
  try {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(1, size)));
    let done = 0;
    while (done < size) {
      const { bytesRead } = await source.read(buffer, 0, Math.min(buffer.byteLength, size - done), done);
      if (bytesRead === 0) break;
      for (let written = 0; written < bytesRead; ) {
        written += (await copied.write(buffer, written, bytesRead - written)).bytesWritten;
      }
      done += bytesRead;
    }
    return done;
  } finally {
    await copied.close();
  }
}
