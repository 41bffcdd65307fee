import { z } from "zod";
import { trustLevels } from "../../core/protocol/environment.js";
import { duration, size } from "./units.js";

/**
 * `environment.yaml`: this schema is its documentation. Every object is strict; a key that nobody knows is refused, as
 * a typing error in a limit would otherwise be a missing limit.
 */

const globs = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).transform((given) => (typeof given === "string" ? [given] : given));

const limits = z
  .strictObject({
    /** Wall clock of one process; default 10 min. */
    wall: duration.default(600_000),
    /** CPU time of the whole tree; default: wall × cpus. */
    cpu: duration.optional(),
    /** Resident memory of the tree; default 4 GiB. */
    memory: size.default(4 * 2 ** 30),
    /** CPU slots, and threads that numeric libraries are told to use; default 1. */
    cpus: z.number().positive().max(1024).default(1),
    /** Processes and threads alive at once; default 256. */
    processes: z.number().int().positive().default(256),
    /** Bytes written to the workspace, the output folder and /tmp; default 1 GiB. */
    disk: size.default(2 ** 30),
    /** Bytes printed; default 64 MiB. */
    output: size.default(64 * 2 ** 20),
  })
  .prefault({});

const secretLike = /key|token|secret|passw|credential|auth|cookie|private/i;

const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
  .refine((name) => !secretLike.test(name), { error: "a variable whose name looks like a secret is never let through to a candidate" });

const stage = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9_-]{0,39}$/, "expected a name of lower-case letters, digits, - and _, beginning with a letter"),
  trust: z.enum(trustLevels).default("candidate"),
  /** Shell command; `{seed}`, `{data}`, `{output}` are filled in. */
  run: z.string().min(1),
  purpose: z.enum(["online", "in-loop", "held-out"]).optional(),
  /** A failure is `preflight_failed`; default: whether the stage's name is preflight. */
  preflight: z.boolean().optional(),
  /** Globs below the output folder; each must match a regular file at the end. */
  outputs: z.array(z.string().min(1)).default([]),
  limits,
  /** Alone on the machine: for wall-clock metrics. */
  exclusive: z.boolean().default(false),
  /** Cold processes per measurement, each on its own sub-seed. */
  repeats: z.number().int().min(1).max(1000).default(1),
  env: z.strictObject({ pass: z.array(variableName).default([]) }).prefault({}),
});

const metricSource = z.union([
  z.literal("measurement").transform(() => ({ kind: "measurement" as const })),
  z.strictObject({ wall: z.string() }).transform(({ wall }) => ({ kind: "wall" as const, stage: wall })),
  z
    .strictObject({ stdout: z.string().min(1).max(500), stage: z.string().optional() })
    .transform(({ stdout, stage: of }) => ({ kind: "stdout" as const, pattern: stdout, stage: of })),
]);

const metric = z.strictObject({
  name: z.string().regex(/^[A-Za-z][A-Za-z0-9_.@-]{0,59}$/),
  direction: z.enum(["minimize", "maximize"]),
  from: metricSource.default({ kind: "measurement" }),
});

const gate = z.union([
  z.strictObject({ metric: z.string(), at_least: z.number().optional(), at_most: z.number().optional(), validity: z.boolean().default(false) }),
  z.strictObject({ artifact: z.string(), at_most: size }),
]);

export const contract = z.strictObject({
  schema: z.literal("trialist/environment@1"),
  name: z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$/),
  /** File that a researcher is told, or the text itself when it holds a line break. */
  description: z.string().default(""),
  knowledge: z.array(z.string()).default([]),
  surface: z.strictObject({ editable: globs, max_bytes: size.default(2 ** 20) }),
  /** Folder of the reference candidate; "." when the environment is a folder of your own. */
  baseline: z.string().default("baseline"),
  runtime: z
    .union([
      z.strictObject({ python: z.strictObject({ requires: z.string().default(">=3.9"), lock: z.string() }) }),
      /** An existing prefix (venv, conda, Node), bound read-only at its own path; recorded as unfrozen. */
      z.strictObject({ use: z.string() }),
    ])
    .optional(),
  data: z
    .strictObject({
      prepare: z.string().optional(),
      prepare_runtime: z.string().optional(),
      released: z.coerce.string().optional(),
      public: z.string().optional(),
      inloop: z.string().optional(),
      heldout: z.string().optional(),
    })
    .optional(),
  mounts: z.array(z.strictObject({ source: z.string(), target: z.string().startsWith("/"), digest: z.enum(["full", "manifest", "stat"]).default("stat") })).default([]),
  stages: z.array(stage).min(1),
  metrics: z.array(metric).min(1),
  gates: z.array(gate).default([]),
  noise: z.strictObject({ calibrate: z.number().int().min(1).max(1000).default(5), remeasure_every: z.number().int().min(0).default(10) }).prefault({}),
  promotion: z
    .strictObject({
      rule: z.enum(["any", "threshold", "confirmed"]).default("confirmed"),
      confirmations: z.number().int().min(1).max(100).default(2),
      level: z.number().gt(0).lt(0.5).default(0.05),
      minimum_gain: z.number().nonnegative().optional(),
    })
    .prefault({}),
  references: z.record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/), z.string()).default({}),
  on_exhausted: z.strictObject({ attempt: z.enum(["fail", "suspend"]).default("fail"), call: z.enum(["fail", "suspend"]).default("suspend") }).prefault({}),
  seed: z.number().int().nonnegative().default(0),
  keep_outputs: z.enum(["best", "all", "none"]).default("none"),
  playbook: z.record(z.string().regex(/^[a-z][a-z0-9-]{0,39}$/), z.string().min(1)).default({}),
});
export type Contract = z.infer<typeof contract>;

/** Every key that a contract may hold anywhere: what a mistyped one is compared with. */
export const knownKeys: readonly string[] = [
  ...["schema", "name", "description", "knowledge", "surface", "editable", "max_bytes", "baseline", "runtime", "python", "requires", "lock", "use", "data", "prepare", "prepare_runtime", "released"],
  ...["public", "inloop", "heldout", "mounts", "source", "target", "digest", "stages", "trust", "run", "purpose", "preflight", "outputs", "limits", "wall", "cpu", "memory", "cpus", "processes", "disk"],
  ...["output", "exclusive", "repeats", "env", "pass", "metrics", "direction", "from", "stdout", "stage", "gates", "metric", "at_least", "at_most", "validity", "artifact", "noise", "calibrate"],
  ...["remeasure_every", "promotion", "rule", "confirmations", "level", "minimum_gain", "references", "on_exhausted", "attempt", "call", "seed", "keep_outputs", "playbook"],
];

/** Keys of the contract's later parts: known, and refused with what to do instead of as a typing error. */
export const laterKeys: readonly string[] = ["evidence", "roles", "purposes", "capabilities", "hosted", "per_checkpoint", "worker", "gpus"];
