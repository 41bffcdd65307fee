import { z } from "zod";

/** The limits that a stage can hit. `wall` gives `timed_out`; every other one gives `over_budget`. */
export const limitNames = ["wall", "cpu", "memory", "processes", "disk", "output"] as const;
export const limitName = z.enum(limitNames);
export type LimitName = z.infer<typeof limitName>;

/** Limits of one stage, resolved: every unit is in the name, 0 never means "none". */
export const stageLimits = z.strictObject({
  wallMs: z.number().int().positive(),
  /** CPU time of the whole process tree. */
  cpuMs: z.number().int().positive(),
  /** Resident memory of the whole process tree. */
  memoryBytes: z.number().int().positive(),
  /** CPU slots that the stage takes; also the value of OMP_NUM_THREADS and its like. May be fractional for tiny stages. */
  cpus: z.number().positive(),
  /** GPUs that it has for itself; absent: none, also in the digest of environments from before there were any. */
  gpus: z.number().int().positive().optional(),
  processes: z.number().int().positive(),
  /** Bytes written below the workspace, the output folder and the temporary folder. */
  diskBytes: z.number().int().positive(),
  /** Bytes printed on standard output and standard error together. */
  outputBytes: z.number().int().positive(),
});
export type StageLimits = z.infer<typeof stageLimits>;

/** What held while a stage ran, as found on the machine and not as wished; recorded on every measurement. */
export const guarantees = z.strictObject({
  sandbox: z.enum(["bubblewrap", "none"]),
  /** The process could open no socket to anything outside itself. */
  networkOff: z.boolean(),
  /** Only declared folders were visible. */
  filesystemIsolated: z.boolean(),
  /** The process ran as an unprivileged real user. */
  unprivileged: z.boolean(),
  /** How the memory limit was enforced. */
  memory: z.enum(["cgroup-v1", "cgroup-v2", "polled"]),
  processes: z.enum(["cgroup", "rlimit", "polled"]),
});
export type Guarantees = z.infer<typeof guarantees>;

/** Captured output: the first and last bytes are kept, the middle is counted. */
export const capturedOutput = z.strictObject({
  /** Total bytes printed, kept or not. */
  bytes: z.number().int().nonnegative(),
  omittedBytes: z.number().int().nonnegative(),
});

export const outputStates = ["present", "missing", "not_a_regular_file", "too_large", "sparse"] as const;
export const declaredOutput = z.strictObject({
  /** Path relative to the output folder; for a glob that matched nothing, the glob. */
  path: z.string(),
  state: z.enum(outputStates),
  bytes: z.number().int().nonnegative(),
  /** What was found, for a person: "a symbolic link", "a FIFO", "3 hard links". */
  found: z.string().optional(),
});
export type DeclaredOutput = z.infer<typeof declaredOutput>;

/** How one physical execution of a stage ended. Facts only; `statusOfStage` judges them. */
export const stageOutcome = z.strictObject({
  /** Exit code of the stage's command, null when a signal ended it. */
  exitCode: z.number().int().nullable(),
  signal: z.string().nullable(),
  /** The limit that ended it, null when none did. */
  limit: limitName.nullable(),
  /** Monotonic, around the process, exec to exit. */
  wallMs: z.number().nonnegative(),
  /** User and system time of the tree. */
  cpuMs: z.number().nonnegative(),
  peakMemoryBytes: z.number().nonnegative(),
  stdout: capturedOutput,
  stderr: capturedOutput,
  outputs: z.array(declaredOutput),
  guarantees,
});
export type StageOutcome = z.infer<typeof stageOutcome>;
