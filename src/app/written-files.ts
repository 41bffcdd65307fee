import { existsSync, mkdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { RefusedError } from "../core/protocol/errors.js";

/**
 * Writes files into a folder, which is made where it is missing.
 * @throws RefusedError when the system does not let us; files that were written before stay
 */
export async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  try {
    makeFolder(folder);
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  } catch (cause) {
    throw new RefusedError(
      {
        expected: "a folder that can be written",
        found: cause instanceof Error ? cause.message : String(cause),
        where: folder,
        todo: "Make room there, or name another folder.",
      },
      { cause },
    );
  }
}

/** Step by step: where a file system lets nobody make folders (`/proc`), Node's recursive way never comes to an end. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const parent = dirname(folder);
  if (parent !== folder) makeFolder(parent);
  mkdirSync(folder);
}
