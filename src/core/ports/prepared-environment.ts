import type { Environment } from "../protocol/environment.js";
import type { Mount } from "./executor.js";

/** Something that nothing freezes is not what it was; in words for the person who has to look. */
export interface Changed {
  readonly reason: string;
  readonly todo: string;
}

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
  /** Whether mounts and an existing prefix are what the run began with: the first that is not, else null. Cheap. */
  readonly changed: () => Promise<Changed | null>;
  /** Where attempts may make their folders: reachable by the sandbox's user. */
  readonly scratchFolder: string;
}
