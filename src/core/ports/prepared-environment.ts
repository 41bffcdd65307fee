import type { Environment } from "../protocol/environment.js";
import type { Mount } from "./executor.js";

/** A frozen environment with everything it needs lying ready on this machine. No path of held-out data is in it. */
export interface PreparedEnvironment {
  readonly environment: Environment;
  readonly digest: string;
  /** Frozen copy of the pack: evaluators and playbooks run in it, read-only. */
  readonly packFolder: string;
  /** Frozen files that a workspace holds beside the candidate (a user's own repository); null when there are none. */
  readonly contextFolder: string | null;
  readonly data: { readonly public: string | null; readonly inloop: string | null };
  readonly runtime: {
    /** Prepended to PATH. */
    readonly path: readonly string[];
    readonly mounts: readonly Mount[];
    readonly environment: Readonly<Record<string, string>>;
  };
  /** External read-only folders. */
  readonly mounts: readonly Mount[];
  /** Where attempts may make their folders: reachable by the sandbox's user. */
  readonly scratchFolder: string;
}
