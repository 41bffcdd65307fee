import type { Digest } from "../../core/protocol/canonical.js";
import type { Environment } from "../../core/protocol/environment.js";
import type { FileRecord } from "./file-digest.js";

/** What the digest of an environment is made of. Held-out data is not: looking at it would be a look. */
export interface Inventory {
  readonly environment: Environment;
  readonly files: readonly (FileRecord & { readonly executable: boolean })[];
  /** Paths of the files that workspaces hold too; null for a pack with a baseline folder of its own. */
  readonly context: readonly string[] | null;
  readonly data: Readonly<Record<string, readonly FileRecord[]>>;
  readonly mounts: readonly Digest[];
}

export const inventoryFile = "inventory.json";
