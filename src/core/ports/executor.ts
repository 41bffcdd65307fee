import type { StageLimits, StageOutcome } from "../protocol/outcome.js";

/** One folder that the stage sees. Everything not listed does not exist for it. */
export interface Mount {
  /** Absolute path on the host. */
  readonly source: string;
  /** Absolute path inside. */
  readonly target: string;
  readonly mode: "read-only" | "read-write";
}

/** A device file that a stage may open. */
export interface Device {
  readonly source: string;
  readonly target: string;
}

/** Everything an executor needs to run one stage once. Written to disk as JSON, so it holds no functions. */
export interface StageExecution {
  /**
   * Names this execution for ever, inside one run: `ATTEMPT/STAGE` such as `m00012.1/train` (the executor replaces
   * `/` where its medium needs it). Starting the same id twice is refused: the first one is found instead.
   */
  readonly id: string;
  /** Run by `/bin/sh -c` in `workingDirectory`. */
  readonly command: string;
  /** Absolute path inside the sandbox. */
  readonly workingDirectory: string;
  /** The whole environment of the process; nothing of ours is inherited. */
  readonly environment: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  /** Device files beside the harmless ones. */
  readonly devices?: readonly Device[];
  /** GPUs that it has for itself, by their numbers on this machine; kept, so that a later owner knows. */
  readonly gpus?: readonly number[];
  /** Written to standard input, which is then closed. Absent: standard input is empty. */
  readonly stdin?: string;
  readonly limits: StageLimits;
  /** Grace between SIGTERM and SIGKILL at the wall limit, in ms. */
  readonly graceMs: number;
  /** Folder on the host where declared outputs are looked for after the end; null when none are declared. */
  readonly outputFolder: string | null;
  /** Globs relative to `outputFolder`. Every one must match a regular file; copies go to `collectInto`. */
  readonly outputs: readonly string[];
  /** Host folder that receives copies of the declared outputs, opened without following links. */
  readonly collectInto: string | null;
  /** Largest size of one collected output in bytes. Larger: state `too_large`, not copied. */
  readonly collectMaxBytes: number;
  /** Host folders whose sizes count against `limits.diskBytes` while the stage runs. */
  readonly writableFolders: readonly string[];
  readonly sandbox: "bubblewrap" | "none";
  /** Bytes of each stream kept from its start and from its end. */
  readonly keepHeadBytes: number;
  readonly keepTailBytes: number;
}

/** Output as captured. Head and tail are verbatim bytes; when `omittedBytes` is 0 the tail follows the head directly. */
export interface CapturedStreams {
  readonly stdout: { readonly head: Uint8Array; readonly tail: Uint8Array };
  readonly stderr: { readonly head: Uint8Array; readonly tail: Uint8Array };
}

/** What became of an execution. `gone`: it was started and has vanished without an end (the machine or its supervisor died). */
export type Found =
  | { readonly state: "unknown" }
  | { readonly state: "running" }
  | { readonly state: "ended"; readonly outcome: StageOutcome }
  | { readonly state: "gone"; readonly reason: string };

/**
 * Runs stages so that they outlive us: an execution belongs to its own session, its limits are enforced and its end is
 * written down without this process. Implementations: local (a supervisor process on this machine), later Slurm, Ray.
 */
export interface Executor {
  /** Starts, or refuses with `ExecutionExistsError` when the id was ever started. Resolves once the end can no longer be lost. */
  start(execution: StageExecution): Promise<void>;
  /** Never throws for an id that was never started: that is `unknown`. */
  find(id: string): Promise<Found>;
  /** Resolves at the end: `ended` or `gone`. Adopts an execution that an earlier process started. */
  wait(id: string): Promise<Exclude<Found, { state: "running" | "unknown" }>>;
  /** Head and tail of an ended or running execution's output. */
  output(id: string): Promise<CapturedStreams>;
  /** Kills the whole tree and waits for its end. A no-op for an ended one. */
  stop(id: string): Promise<void>;
  /** Executions that run and have GPUs for themselves, whoever started them. */
  gpusInUse(): Promise<readonly { readonly id: string; readonly gpus: readonly number[] }[]>;
  /** Removes what the executor keeps about ended executions whose id starts with `prefix`. */
  forget(prefix: string): Promise<void>;
  /** Lets go without stopping anything that runs, and rejects who still waits; a supervisor with nothing left to do ends by itself. */
  close(): Promise<void>;
}
