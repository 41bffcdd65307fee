import { closeSync, createReadStream, mkdirSync, openSync, writeSync } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Parser, type ReadEntry } from "tar";
import { isPlainPath } from "../../core/harness/admission.js";
import { RefusedError, TrialistError } from "../../core/protocol/errors.js";

/** An archive is damaged, or made to do harm. Nothing of it was used. */
export class ArchiveRefusedError extends TrialistError {
  readonly kind = "corrupt";
}

export interface ArchiveBounds {
  readonly files: number;
  readonly bytes: number;
  /** A small file may unpack to this much whatever its ratio; beyond, a byte may become `ratio` of them. */
  readonly freeBytes: number;
  readonly ratio: number;
}

/** Most that is unpacked: packets hold code and data sets, no disks. */
export const packetBounds: ArchiveBounds = { files: 400_000, bytes: 64 * 2 ** 30, freeBytes: 256 * 2 ** 20, ratio: 100 };

/**
 * Unpacks the regular files of a `.tar.gz` below a folder, and refuses everything else: links, devices, folders, paths
 * that leave it, a path twice, more than the bounds. Permissions, owners and times of the archive are ignored.
 * @throws ArchiveRefusedError, RefusedError where there is no such file; the caller removes the folder
 */
export async function readArchive(file: string, folder: string, bounds: ArchiveBounds = packetBounds): Promise<ReadonlySet<string>> {
  const facts = await stat(file).catch(() => null);
  if (facts === null || !facts.isFile())
    throw new RefusedError({
      expected: "a file that `trialist pack` wrote",
      found: facts === null ? "no file of that name" : "no regular file",
      where: file,
    });
  const unpacking = new Unpacking(file, folder, bounds);
  const most = Math.min(bounds.bytes, bounds.freeBytes + bounds.ratio * facts.size);
  const parser = new Parser({ strict: true, maxMetaEntrySize: 64 * 1024, onReadEntry: (entry) => unpacking.take(entry) });
  try {
    await pipeline(createReadStream(file), createGunzip(), limited(file, most), unpacking.guarded(parser));
  } catch (error) {
    unpacking.close();
    if (error instanceof ArchiveRefusedError) throw error;
    throw refused(file, "a whole .tar.gz as `trialist pack` writes it", error instanceof Error ? error.message : String(error), error);
  }
  return unpacking.paths;
}

/** Lets through so many bytes, and none that would be unpacked a second time. */
function limited(file: string, most: number): Transform {
  let seen = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      // A tar begins with a name; what begins with anything else could be an archive in an archive, which no bound counts.
      if (seen === 0 && !/^[\x20-\x7e]{2}/.test(chunk.subarray(0, 2).toString("latin1")))
        return done(refused(file, "a tar archive inside the gzip", "something else"));
      seen += chunk.length;
      if (seen > most) return done(refused(file, `at most ${most} bytes unpacked`, "more"));
      return done(null, chunk);
    },
  });
}

class Unpacking {
  readonly paths = new Set<string>();
  private open: number | null = null;
  private failure: ArchiveRefusedError | null = null;

  constructor(
    private readonly file: string,
    private readonly folder: string,
    private readonly bounds: ArchiveBounds,
  ) {}

  /** One entry, written as it is read. */
  take(entry: ReadEntry): void {
    const { path } = entry;
    const fault = this.faultOf(entry);
    if (fault !== null) {
      this.failure ??= refused(this.file, "regular files with plain paths, each once", fault);
      entry.resume();
      return;
    }
    this.paths.add(path);
    const target = join(this.folder, path);
    try {
      mkdirSync(dirname(target), { recursive: true });
      const opened = openSync(target, "wx", 0o644);
      this.open = opened;
      entry.on("data", (chunk: Buffer) => this.write(opened, chunk));
      entry.on("end", () => this.close());
    } catch (error) {
      this.failure ??= refused(
        this.file,
        "regular files with plain paths, each once",
        `${JSON.stringify(path)}: ${(error as Error).message}`,
      );
      entry.resume();
    }
  }

  close(): void {
    if (this.open !== null) closeSync(this.open);
    this.open = null;
  }

  /** The parser as the end of a pipeline: what was found wrong in an entry stops the reading at once. */
  guarded(parser: Parser): Transform {
    const guard = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        parser.write(chunk);
        done(this.failure);
      },
      flush: (done) => {
        parser.end();
        done(this.failure);
      },
    });
    parser.on("error", (error: Error) => {
      this.failure ??= refused(this.file, "a whole tar archive", error.message, error);
    });
    return guard.resume();
  }

  private write(to: number, chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) at += writeSync(to, chunk, at);
  }

  private faultOf({ path, type }: ReadEntry): string | null {
    const named = JSON.stringify(path.slice(0, 200));
    if (type !== "File" && type !== "OldFile") return `${named}, which is a ${type}`;
    if (!isPlainPath(path)) return `the path ${named}`;
    if (this.paths.has(path)) return `${named} twice`;
    return this.paths.size >= this.bounds.files ? `more than ${this.bounds.files} files` : null;
  }
}

function refused(where: string, expected: string, found: string, cause?: unknown): ArchiveRefusedError {
  return new ArchiveRefusedError(
    { expected, found, where, todo: "Nothing of it was used. Ask for the packet again, from somebody whom you know." },
    cause === undefined ? undefined : { cause },
  );
}
