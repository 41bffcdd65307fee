import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { type Digest, digestOfValue } from "../../core/protocol/canonical.js";
import type { Environment } from "../../core/protocol/environment.js";
import { digestFile } from "./file-digest.js";
import { listFolder } from "./folder-files.js";

/** An external folder's digest, as thorough as the contract asks: names and sizes, with times, or with every byte. */
export async function digestMount(mount: Environment["mounts"][number]): Promise<Digest> {
  const lines: unknown[] = [];
  for (const entry of await listFolder(mount.source, new Set())) {
    const path = join(mount.source, entry.path);
    if (mount.digest === "stat") lines.push([entry.path, entry.kind, entry.bytes, Math.trunc((await lstat(path)).mtimeMs)]);
    else if (mount.digest === "full" && entry.kind === "file") lines.push([entry.path, (await digestFile(path)).digest]);
    else lines.push([entry.path, entry.kind, entry.bytes]);
  }
  return digestOfValue({ target: mount.target, digest: mount.digest, lines });
}
