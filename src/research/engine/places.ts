import { join } from "node:path";
import type { Mount } from "../../core/ports/executor.js";

/** Where a candidate's stage starts, inside the sandbox. */
export const workspacePlace = "/trialist/workspace";

/** Where things lie for a stage: inside the sandbox at fixed paths, without one at their own. */
export class Places {
  readonly mounts: Mount[] = [];

  constructor(private readonly sandbox: "bubblewrap" | "none") {}

  /** Makes a host folder visible and returns its path for the stage. */
  show(source: string, inside: string, mode: Mount["mode"]): string {
    const target = this.sandbox === "none" ? source : join("/trialist", inside);
    this.mounts.push({ source, target, mode });
    return target;
  }

  showAsIs(mounts: readonly Mount[]): void {
    this.mounts.push(...mounts);
  }
}
