import { join } from "node:path";
import { type CandidateFile, type CandidateManifest, manifestOf } from "../../core/protocol/candidate.js";
import { digestOf } from "../../core/protocol/canonical.js";
import { TrialistError } from "../../core/protocol/errors.js";
import { openRegular } from "./file-digest.js";
import { type FolderEntry, listFolder } from "./folder-files.js";
import { pathFault, pathMatcher } from "./globs.js";

/** The editable files of a working tree cannot be a candidate. */
export class SurfaceRefusedError extends TrialistError {
  readonly kind = "refused";
}

export interface SurfaceSnapshot {
  readonly manifest: CandidateManifest;
  /** By path. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

const maxFiles = 2_000;

/**
 * Reads the editable surface of a working tree: regular files that the globs match, ordered by path, whatever the file
 * system's order. @throws SurfaceRefusedError for a link, an odd name, or too much
 */
export async function snapshotSurface(
  folder: string,
  surface: { readonly editable: readonly string[]; readonly maxBytes: number },
): Promise<SurfaceSnapshot> {
  const matches = pathMatcher(surface.editable);
  const entries = (await listFolder(folder)).filter((entry) => matches(entry.path));
  refuseOdd(folder, entries);
  refuseMuch(folder, entries, surface.maxBytes);
  const contents = new Map<string, Uint8Array>();
  const files: CandidateFile[] = [];
  for (const entry of entries) {
    const bytes = await readRegular(folder, entry.path);
    contents.set(entry.path, bytes);
    files.push({ path: entry.path, digest: digestOf(bytes), bytes: bytes.byteLength, executable: entry.executable });
  }
  // Files grow while they are read: what counts is what was read.
  refuseMuch(folder, files, surface.maxBytes);
  return { manifest: manifestOf(files), contents };
}

async function readRegular(folder: string, path: string): Promise<Uint8Array> {
  const handle = await openRegular(join(folder, path)).catch((cause: NodeJS.ErrnoException) => {
    throw new SurfaceRefusedError(
      {
        expected: "a regular file",
        found: cause.code ?? cause.message,
        where: join(folder, path),
        todo: "Put a regular file in its place.",
      },
      { cause },
    );
  });
  return handle.readFile().finally(() => handle.close());
}

function refuseOdd(folder: string, entries: readonly FolderEntry[]): void {
  for (const entry of entries) {
    const where = join(folder, entry.path);
    const fault = pathFault(entry.path);
    if (fault !== null)
      throw new SurfaceRefusedError({
        expected: "a plain file name",
        found: `${JSON.stringify(entry.path)}: ${fault}`,
        where: JSON.stringify(where),
        todo: "Rename the file.",
      });
    if (entry.kind !== "file")
      throw new SurfaceRefusedError({
        expected: "regular files alone in the editable surface",
        found: entry.kind === "link" ? "a symbolic link" : "a socket, a FIFO or a device",
        where,
        todo: "Put a regular file in its place.",
      });
  }
}

function refuseMuch(folder: string, entries: readonly { readonly bytes: number }[], maxBytes: number): void {
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
  if (bytes <= maxBytes && entries.length <= maxFiles) return;
  throw new SurfaceRefusedError({
    expected: `at most ${maxBytes} bytes in at most ${maxFiles} editable files`,
    found: `${bytes} bytes in ${entries.length} files`,
    where: folder,
    todo: "Narrow surface.editable, or raise surface.max_bytes.",
  });
}
