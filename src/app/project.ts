import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { RefusedError } from "../core/protocol/errors.js";
import { runName } from "../core/protocol/ids.js";

/** Where a project keeps its runs: `.trialist/` in the folder that commands are run in. */
export class Project {
  readonly root: string;

  constructor(folder: string) {
    this.root = join(resolve(folder), ".trialist");
  }

  /** The folder that commands are run in. */
  get folder(): string {
    return dirname(this.root);
  }

  get blobFolder(): string {
    return join(this.root, "blobs");
  }

  /** Folder of a run that may not exist. @throws RefusedError for a name that is none */
  runFolder(name: string): string {
    if (!runName.safeParse(name).success) {
      throw new RefusedError({
        expected: "a run name of up to 64 letters, digits, dots, dashes and underscores that begins with a letter or digit",
        found: JSON.stringify(name),
      });
    }
    return join(this.root, "runs", name);
  }

  /** Folder of a run that exists. @throws RefusedError */
  existingRun(name: string): string {
    const folder = this.runFolder(name);
    if (existsSync(join(folder, "ledger.sqlite"))) return folder;
    const known = this.runNames();
    throw new RefusedError({
      expected: "the name of a run of this project",
      found: JSON.stringify(name),
      where: this.root,
      todo:
        known.length === 0 ? "There is no run here yet: `trialist run ENVIRONMENT` starts one." : `Known: ${known.slice(-20).join(", ")}.`,
    });
  }

  runNames(): string[] {
    const folder = join(this.root, "runs");
    if (!existsSync(folder)) return [];
    return (
      readdirSync(folder, { withFileTypes: true })
        // An import that has not ended lies beside the runs, under a name that no run can have.
        .filter(
          (entry) => entry.isDirectory() && runName.safeParse(entry.name).success && existsSync(join(folder, entry.name, "ledger.sqlite")),
        )
        .map((entry) => entry.name)
        .sort()
    );
  }

  /** A name that no run has: the wish itself, or with a number behind it. */
  freeName(wish: string): string {
    const taken = new Set(this.runNames());
    for (let number = 1; ; number++) {
      const name = number === 1 ? wish : `${wish}-${number}`;
      if (!taken.has(name)) return name;
    }
  }

  /** @throws RefusedError where the folder cannot be written */
  make(): void {
    // Step by step: of a read-only file system, a recursive one says that the folder above is missing.
    for (const folder of [this.folder, this.root, join(this.root, "runs"), this.blobFolder]) this.makeFolder(folder);
  }

  /**
   * Where packets go, made if need be. They lie beside the runs: a file more in an environment's folder would make it another
   * environment. @throws RefusedError where the folder cannot be written
   */
  makePacketFolder(): string {
    const folder = join(this.root, "packets");
    this.makeFolder(folder);
    return folder;
  }

  private makeFolder(folder: string): void {
    try {
      if (!existsSync(folder)) mkdirSync(folder, { recursive: folder === this.folder });
    } catch (error) {
      throw new RefusedError({
        expected: "a folder that runs can be recorded in",
        found: error instanceof Error ? error.message : String(error),
        where: this.root,
        todo: "Run the command in a folder that you can write to, or name one with -C; the environment may lie elsewhere.",
      });
    }
  }
}
