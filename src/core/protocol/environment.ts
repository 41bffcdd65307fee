import { z } from "zod";
import { stageLimits } from "./outcome.js";

/**
 * The environment as a run freezes it: every default filled in, every unit resolved, every path checked by the loader
 * (adapters/environments), which also owns the YAML form with its units ("10 min", "4 GiB").
 */

export const trustLevels = ["candidate", "trainer", "evaluator", "interactive", "held-out"] as const;
export const purposes = ["online", "in-loop", "confirmation", "held-out"] as const;

export const stage = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,39}$/),
  trust: z.enum(trustLevels),
  /** Shell command; `{seed}`, `{data}`, `{output}` are replaced. */
  run: z.string().min(1),
  /** What the stage's metrics are for; null for a stage that measures nothing. */
  purpose: z.enum(purposes).nullable(),
  /** A failing preflight is `preflight_failed`, not `crashed`. */
  preflight: z.boolean(),
  outputs: z.array(z.string()),
  limits: stageLimits,
  /** Runs alone on the machine. */
  exclusive: z.boolean(),
  /** Cold processes per attempt, each with its own sub-seed; outputs lie under `repeat-1/`, `repeat-2/` … when more than 1. */
  repeats: z.number().int().min(1).max(1000),
  /** Names of host variables that are let through. */
  pass: z.array(z.string()),
});
export type Stage = z.infer<typeof stage>;

export const metric = z.strictObject({
  name: z.string().regex(/^[A-Za-z][A-Za-z0-9_.@-]{0,59}$/),
  direction: z.enum(["minimize", "maximize"]),
  /**
   * measurement: from the evaluator's file. wall: seconds around the stage's process, mean over repeats, by the engine.
   * stdout: last match of the pattern's first group in the candidate's output; json: a number in a JSON file that is a
   * declared output of the candidate's stage. Both are *self-reported*, and marked so everywhere.
   */
  from: z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("measurement") }),
    z.strictObject({ kind: z.literal("wall"), stage: z.string() }),
    z.strictObject({ kind: z.literal("stdout"), stage: z.string(), pattern: z.string() }),
    z.strictObject({ kind: z.literal("json"), stage: z.string(), file: z.string(), key: z.string() }),
  ]),
});
export type Metric = z.infer<typeof metric>;

export const gate = z.union([
  z.strictObject({
    metric: z.string(),
    atLeast: z.number().nullable(),
    atMost: z.number().nullable(),
    /** A validity gate (format) makes the trial invalid; else it is a valid result that is not legal. */
    validity: z.boolean(),
  }),
  z.strictObject({ artifact: z.string(), atMostBytes: z.number().int().positive() }),
]);
export type Gate = z.infer<typeof gate>;

/**
 * `compare` promotes nothing: every valid trial is measured beside the baseline on fresh seeds, whatever its first value,
 * so that no value selects what is measured again. For lists of known candidates; no environment can ask for it.
 */
export const promotionRules = ["any", "threshold", "confirmed", "compare"] as const;

export const promotion = z.strictObject({
  rule: z.enum(promotionRules),
  /** Fresh-seed pairs (candidate, leader) per confirmation. */
  confirmations: z.number().int().min(1).max(100),
  /** One-sided level of every verdict. */
  level: z.number().gt(0).lt(0.5),
  /**
   * `threshold`: a gain that counts without noise or records; null when the noise floor decides. `compare`: the gain
   * below which two candidates count as equal, stated before anything is measured; nothing is decided by it here.
   */
  minimumGain: z.number().nonnegative().nullable(),
});
export type Promotion = z.infer<typeof promotion>;

export const mount = z.strictObject({
  source: z.string(),
  /** An absolute path, or one inside the workspace. */
  target: z.string(),
  digest: z.enum(["full", "manifest", "stat", "none"]),
});

/** A number in an editable file that an optimizer may choose. */
export const parameter = z.strictObject({
  name: z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,59}$/),
  /** Relative to the surface's folder. */
  file: z.string(),
  /** Text that stands before the number, once in the file. */
  after: z.string().min(1).max(200),
  type: z.enum(["float", "int"]),
  low: z.number(),
  high: z.number(),
  /** Searched on a logarithmic scale. */
  log: z.boolean(),
});
export type Parameter = z.infer<typeof parameter>;

export const environment = z.strictObject({
  schema: z.literal("trialist/environment@1"),
  name: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/i),
  /** What a researcher is told. */
  description: z.string(),
  /** Static priors, shown to every proposer: `{ path, text }`. */
  knowledge: z.array(z.strictObject({ path: z.string(), text: z.string() })),
  surface: z.strictObject({
    editable: z.array(z.string()).min(1),
    maxBytes: z.number().int().positive(),
    /** Left out where there are none, so that the digest of an environment without any is what it always was. */
    parameters: z.array(parameter).min(1).max(100).optional(),
    /** Folders of a repository that a stage may write to, beside the root and those of the candidate's files. */
    writable: z.array(z.string()).optional(),
  }),
  /** Frozen runtime; null: the system's interpreters. `use` binds an existing prefix, unfrozen. */
  runtime: z
    .union([
      z.strictObject({ kind: z.literal("python"), requires: z.string(), lock: z.string(), lockDigest: z.string() }),
      z.strictObject({ kind: z.literal("prefix"), use: z.string() }),
    ])
    .nullable(),
  data: z
    .strictObject({
      prepare: z.string().nullable(),
      prepareRuntime: z.string().nullable(),
      released: z.string().nullable(),
      public: z.string().nullable(),
      inloop: z.string().nullable(),
      heldout: z.string().nullable(),
    })
    .nullable(),
  mounts: z.array(mount),
  stages: z.array(stage).min(1),
  metrics: z.array(metric).min(1),
  gates: z.array(gate),
  noise: z.strictObject({
    /** Baseline repetitions at calibration. */
    calibrate: z.number().int().min(1).max(1000),
    /** A baseline re-measurement is due after this many trials; 0: never. */
    remeasureEvery: z.number().int().min(0),
  }),
  promotion,
  references: z.array(z.strictObject({ name: z.string(), path: z.string() })),
  onExhausted: z.strictObject({
    attempt: z.enum(["fail", "suspend"]),
    call: z.enum(["fail", "suspend"]),
  }),
  /** Seed of everything that must not vary between trials of a run: subset, training, decoding. */
  seed: z.number().int().nonnegative(),
  keepOutputs: z.enum(["all", "best", "none"]),
  /** Command researchers that come with the pack, by name, run in the pack's folder. */
  playbook: z.record(z.string(), z.string()),
  /** Path of the baseline folder or file list inside the pack. */
  baseline: z.string(),
});
export type Environment = z.infer<typeof environment>;

/** Whether a metric is taken from the candidate's own words, printed or written to a file. */
export function isSelfReported(which: Metric): boolean {
  return which.from.kind === "stdout" || which.from.kind === "json";
}
