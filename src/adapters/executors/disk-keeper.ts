import { open } from "node:fs/promises";

const delayMs = 500;

/**
 * Tells the disk to keep files over a power loss, a little after they were written and many at once: waiting for the
 * disk at every end would slow down whatever starts next, and a death of a process loses nothing that was written.
 */
export class DiskKeeper {
  private paths = new Set<string>();
  private timer: NodeJS.Timeout | undefined;

  keep(paths: readonly string[]): void {
    for (const path of paths) this.paths.add(path);
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.flush();
    }, delayMs);
  }

  private async flush(): Promise<void> {
    const paths = this.paths;
    this.paths = new Set();
    for (const path of paths) {
      try {
        const file = await open(path, "r");
        try {
          await file.sync();
        } finally {
          await file.close();
        }
      } catch {
        // Forgotten in the meantime.
      }
    }
  }
}
