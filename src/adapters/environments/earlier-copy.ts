import { linkSync, lstatSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Digest, digestOf } from "../../core/protocol/canonical.js";
import type { Cache } from "./cache.js";
import { DigestMemory } from "./digest-memory.js";
import { type Inventory, inventoryFile } from "./inventory.js";

type FrozenFile = Inventory["files"][number];

/**
 * The frozen environment that a folder was made into the last time. A changed contract, or one changed file of 20,000, makes
 * another environment: what stayed the same is linked from this one instead of being copied. Frozen files are written by
 * nobody, and each environment is checked file by file when it is opened, so that sharing them hides nothing.
 */
export class EarlierCopy {
  private readonly linked: FrozenFile[] = [];

  private constructor(
    private readonly pack: string,
    private readonly files: ReadonlyMap<string, FrozenFile>,
    private readonly memory: DigestMemory,
  ) {}

  /** @param source the environment's folder; null where it was never frozen, or its copy is gone */
  static of(cache: Cache, source: string): EarlierCopy | null {
    try {
      const digest = readFileSync(pointer(cache, source), "utf8");
      if (!/^[0-9a-f]{64}$/.test(digest)) return null;
      const folder = cache.folder("environments", digest);
      const text = readFileSync(join(folder, inventoryFile), "utf8");
      if (digestOf(text) !== digest) return null;
      const { files } = JSON.parse(text) as Inventory;
      return new EarlierCopy(join(folder, "pack"), new Map(files.map((file) => [file.path, file])), DigestMemory.open(cache, folder));
    } catch {
      // It saves time and decides nothing.
      return null;
    }
  }

  /** Notes what a folder was frozen as, for the next time. */
  static remember(cache: Cache, source: string, digest: Digest): void {
    try {
      writeFileSync(pointer(cache, source), digest);
    } catch {
      // The next time copies everything.
    }
  }

  /** False where the file is another one, is not known to be as it was copied, or cannot be linked. */
  link(file: FrozenFile, target: string): boolean {
    const before = this.files.get(file.path);
    if (before?.digest !== file.digest || before.executable !== file.executable) return false;
    const path = join(this.pack, file.path);
    try {
      const mode = lstatSync(path).mode & 0o777;
      if (mode !== (file.executable ? 0o555 : 0o444) || this.memory.knownOf(path) !== file.digest) return false;
      linkSync(path, target);
    } catch {
      return false;
    }
    this.linked.push(file);
    return true;
  }

  /** A link changes a file's times: without this the earlier environment would be read again when it is opened. */
  close(): void {
    try {
      for (const file of this.linked) this.memory.remember(join(this.pack, file.path), file.digest);
    } catch {
      // Somebody removed it meanwhile: nobody will open it.
    } finally {
      this.memory.close();
    }
  }
}

function pointer(cache: Cache, source: string): string {
  return cache.folder("digests", `${digestOf(source).slice(0, 40)}.frozen`);
}
