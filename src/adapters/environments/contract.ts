import { z } from "zod";
import { trustLevels } from "../../core/protocol/environment.js";
import { globFault, normalizePath, pathFault } from "./globs.js";
import { patternFault } from "./metric-pattern.js";
import { isVersionRequirement } from "./python-versions.js";
import { secretName } from "./secret-names.js";
import { type Quantity, readDuration, readSize } from "./units.js";

/**
 * The YAML form of an environment: what a person writes into `environment.yaml`. This schema with its comments is the
 * documentation of the file. Defaults are filled in by `resolve.ts`, which makes the frozen form of `core/protocol`.
 *
 * Every object is strict: a typing error in a limit would otherwise be a missing limit. Messages in this file complete
 * the words "expected: …".
 */

/** Limits of a stage that does not name them. CPU time: wall × cpus, rounded up to whole slots. */
export const defaultLimits = {
  wallMs: 600_000,
  memoryBytes: 4 * 2 ** 30,
  cpus: 1,
  processes: 256,
  diskBytes: 2 ** 30,
  outputBytes: 64 * 2 ** 20,
} as const;

const defaultSurfaceBytes = 2 ** 20;
export const defaultNoise = { calibrate: 5, remeasureEvery: 10 } as const;
export const defaultPromotion = { rule: "confirmed", confirmations: 2, level: 0.05, minimumGain: null } as const;

function refuse(context: z.RefinementCtx, expected: string, todo: string): void {
  context.addIssue({ code: "custom", message: expected, params: { todo } });
}

function quantity(reader: (input: string | number) => Quantity, expected: string) {
  return z.union([z.string(), z.number()], { error: expected }).transform((input, context) => {
    const reading = reader(input);
    if (reading.ok) return reading.value;
    refuse(context, reading.expected, reading.todo);
    return z.NEVER;
  });
}

/** "500 ms", "10 s", "10 min", "2 h"; a bare number is refused. */
const duration = quantity(readDuration, "a duration with its unit, such as 10 s");
/** "512 KiB", "1 MiB" = 2^20, "16 MB" = 16 × 10^6; a bare number is refused. */
const size = quantity(readSize, "a size with its unit, such as 1 MiB");

/** A key that a later version will know. Refusing it is honest; ignoring it would change what is measured. */
function notYet(what: string) {
  return z
    .unknown()
    .superRefine((_, context) =>
      refuse(
        context,
        `no such key: ${what} is not supported yet by this version of trialist`,
        "remove the key, or use a version that has it",
      ),
    )
    .optional();
}

function checked(fault: (text: string) => string | null, expected: string, todo: string) {
  return z.string().superRefine((text, context) => {
    const reason = fault(text);
    if (reason !== null) refuse(context, expected, `${reason}; ${todo}`);
  });
}

/** A path relative to the folder of environment.yaml. */
const packPath = checked(pathFault, "a path inside this folder", "name a file or folder below environment.yaml");
const glob = checked(globFault, "a glob that stays inside the folder", "write it relative to the folder, without `..`");

const absolutePath = z.string().regex(/^\/(?!.*(^|\/)\.\.(\/|$))[^\n\r]*$/, "an absolute path without `..`");
const name = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/i, "a name of letters, digits, `.`, `_`, `-`, at most 64");
const playbookName = z.string().regex(/^[a-z][a-z0-9-]{0,39}$/, "a name of lower-case letters, digits and `-`, starting with a letter");
const stageName = z.string().regex(/^[a-z][a-z0-9_-]{0,39}$/, "a name of lower-case letters, digits, `_`, `-`, starting with a letter");
const metricName = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_.@-]{0,59}$/, "a name of letters, digits, `_`, `.`, `@`, `-`, starting with a letter");

const limits = z.strictObject({
  /** Wall-clock time; the end is `timed_out`. Default 10 min. */
  wall: duration.optional(),
  /** CPU time of all the stage's processes together. Default: wall × cpus. */
  cpu: duration.optional(),
  /** Resident memory of the whole tree. Default 4 GiB. */
  memory: size.optional(),
  /** CPU slots taken, and the number of threads that numerical libraries start. Default 1. */
  cpus: z.number().positive().max(4096).optional(),
  /** Processes and threads at one time. Default 256. */
  processes: z.number().int().positive().max(1_000_000).optional(),
  /** Bytes written to the workspace, the output folder and the temporary folder. Default 1 GiB. */
  disk: size.optional(),
  /** Bytes printed. Default 64 MiB. */
  output: size.optional(),
  /** GPUs that the stage has for itself. Default 0: it sees none. */
  gpus: z.number().int().min(0).max(1024).optional(),
});

const passedName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "the name of an environment variable")
  .superRefine((variable, context) => {
    if (!secretName.test(variable)) return;
    refuse(
      context,
      "a variable whose name does not look like a secret's",
      "candidates run code that nobody has read: keep secrets out of stages",
    );
  });

const trust = z.enum(trustLevels).superRefine((level, context) => {
  if (level !== "trainer" && level !== "interactive") return;
  refuse(
    context,
    `candidate, evaluator or held-out: \`${level}\` is not supported yet by this version of trialist`,
    "use one of the three",
  );
});

const stage = z.strictObject({
  name: stageName,
  /** candidate: untrusted code. evaluator: trusted, sees labels. held-out: an evaluator that only the operator starts. */
  trust: trust.default("candidate"),
  /** Shell command; `{seed}`, `{data}`, `{output}` are replaced. */
  run: z.string().min(1, "a shell command").max(4000, "a shell command of at most 4000 characters"),
  /** Default: held-out for that trust, in-loop for the last evaluator that has none, else nothing is measured. */
  purpose: z.enum(["online", "in-loop", "held-out"]).optional(),
  /** Its failure is `preflight_failed`. Default: true for a candidate's stage that is called preflight. */
  preflight: z.boolean().optional(),
  /** Files or globs below the output folder that must exist at the end; evaluators read copies of them. */
  outputs: z.array(glob).optional(),
  limits: limits.optional(),
  /** Runs alone on the machine; wall-clock metrics need it. */
  exclusive: z.boolean().optional(),
  /** Cold processes per attempt, each with its own sub-seed. Default 1. */
  repeats: z.number().int().min(1).max(1000).optional(),
  /** Variables of the host that are let through. */
  env: z.strictObject({ pass: z.array(passedName) }).optional(),
  worker: z.literal("fresh", { error: "fresh: warm workers are not supported yet by this version of trialist" }).optional(),
  per_checkpoint: notYet("`per_checkpoint`"),
  hosted: notYet("`hosted`"),
  capabilities: notYet("`capabilities`"),
});

const pattern = checked(patternFault, "a regular expression whose first group is the number", 'try "score[=: ]+([-+0-9.e]+)"');

/** Where a number lies in a JSON document: names and list positions (`-1` is the last one), joined by dots. */
const jsonKey = z
  .string()
  .regex(/^[^\p{Cc}\u2028\u2029]{1,200}$/u, "a key such as score or val.loss, of at most 200 characters, without control characters");

const metric = z.strictObject({
  name: metricName,
  direction: z.enum(["minimize", "maximize"]),
  /**
   * Where the value comes from. `measurement` (default): the evaluator's file. `{ wall: STAGE }`: seconds around that
   * stage's process. `{ stdout: REGEX, stage: STAGE }`: the candidate's own words, marked *self-reported* for ever; the
   * stage defaults to the last candidate stage, and the pattern is matched line by line, the last match counts.
   * `{ json: FILE, key: a.b, stage: STAGE }`: a number in a JSON file that the stage declares as an output, *self-reported*
   * too; the stage defaults to the one that declares the file, the key to the metric's name.
   */
  from: z
    .union(
      [
        z.literal("measurement"),
        z.strictObject({ wall: z.string() }),
        z.strictObject({ stdout: pattern, stage: z.string().optional() }),
        z.strictObject({ json: packPath, key: jsonKey.optional(), stage: z.string().optional() }),
      ],
      { error: "measurement, { wall: STAGE }, { stdout: REGEX, stage: STAGE } or { json: FILE, key: a.b, stage: STAGE }" },
    )
    .optional(),
});

const gate = z
  .strictObject({
    /** A metric's name, with at_least, at_most or both. */
    metric: z.string().optional(),
    /** Or a declared output, with at_most as a size. */
    artifact: glob.optional(),
    at_least: z.number().optional(),
    at_most: z.union([z.number(), z.string()], { error: "a number for a metric, a size such as 16 MB for an artifact" }).optional(),
    /** A miss makes the trial invalid (a format rule) instead of a valid result that is not legal. */
    validity: z.boolean().optional(),
  })
  .transform((form, context) => {
    if ((form.metric === undefined) === (form.artifact === undefined)) {
      refuse(context, "either `metric` or `artifact`", "write { metric: NAME, at_least: 0.5 } or { artifact: FILE, at_most: 16 MB }");
      return z.NEVER;
    }
    return form.metric !== undefined ? metricGate(form, form.metric, context) : artifactGate(form, form.artifact as string, context);
  });

interface GateForm {
  readonly at_least?: number | undefined;
  readonly at_most?: number | string | undefined;
  readonly validity?: boolean | undefined;
}

function metricGate(form: GateForm, metric: string, context: z.RefinementCtx) {
  const { at_least: least, at_most: most } = form;
  if (typeof most === "string" || (least === undefined && most === undefined)) {
    refuse(context, "a bound for the metric", "write at_least or at_most with a plain number");
    return z.NEVER;
  }
  return { kind: "metric" as const, metric, atLeast: least ?? null, atMost: most ?? null, validity: form.validity ?? false };
}

function artifactGate(form: GateForm, artifact: string, context: z.RefinementCtx) {
  const reading = form.at_most === undefined ? null : readSize(form.at_most);
  if (reading === null || form.at_least !== undefined || form.validity !== undefined) {
    refuse(context, "`at_most` with a size, and nothing else beside `artifact`", "write { artifact: FILE, at_most: 16 MB }");
    return z.NEVER;
  }
  if (!reading.ok) {
    refuse(context, reading.expected, reading.todo);
    return z.NEVER;
  }
  return { kind: "artifact" as const, artifact, atMostBytes: reading.value };
}

const requirement = z.string().superRefine((text, context) => {
  if (isVersionRequirement(text)) return;
  refuse(context, 'a Python version requirement such as ">=3.10" or ">=3.10,<3.14"', "quote it and use >=, <, ==, != or ~=");
});

const runtime = z
  .strictObject({
    /** Built once from a lock with hashes, cached by digest, read-only for candidates. */
    python: z.strictObject({ requires: requirement.default(">=3.9"), lock: packPath }).optional(),
    /** An existing prefix (a venv, a conda or Node folder), bound read-only at its own path; recorded as unfrozen. */
    use: z.string().min(1).optional(),
  })
  .superRefine((form, context) => {
    if ((form.python === undefined) !== (form.use === undefined)) return;
    refuse(context, "either `python` or `use`", "write { python: { requires, lock } }, or { use: PREFIX }, or leave `runtime` out");
  });

const data = z.strictObject({
  /** Script that turns raw data into the folders below: `python prepare.py OUT` writes OUT/public and so on. */
  prepare: packPath.optional(),
  /** Lock with hashes of the preparation's own packages; they never reach a candidate. */
  prepare_runtime: packPath.optional(),
  /** When the answers became public. */
  released: z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2}$/, "a date such as 2024-06-01")
    .optional(),
  /** The candidate sees this, read-only. With `prepare`: written by it; without: a folder that exists. */
  public: packPath.optional(),
  /** Evaluators only. */
  inloop: packPath.optional(),
  /** The held-out stage only. */
  heldout: packPath.optional(),
});

const parameterName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,59}$/, "a name of letters, digits, `_`, `.`, `-`, at most 60");

const parameter = z
  .strictObject({
    name: parameterName,
    /** Editable file that holds the number, relative to the baseline folder. */
    file: packPath,
    /** Text that stands right before the number, once in that file: `"LEARNING_RATE = "`, `'"depth": '`. */
    after: z.string().min(1, "the text before the number").max(200, "a text of at most 200 characters"),
    /** Default float. */
    type: z.enum(["float", "int"]).default("float"),
    low: z.number(),
    high: z.number(),
    /** Searched on a logarithmic scale. Default false. */
    log: z.boolean().default(false),
  })
  .superRefine((form, context) => {
    if (form.low >= form.high) refuse(context, "`low` below `high`", "write the bounds between which the number may lie");
    if (form.log && form.low <= 0) refuse(context, "`low` above 0 on a logarithmic scale", "raise `low`, or leave `log` out");
    if (form.type === "int" && !(Number.isInteger(form.low) && Number.isInteger(form.high)))
      refuse(context, "whole bounds for an int", "write whole numbers, or `type: float`");
  });

const placeInWorkspace = packPath.refine(
  (path) => normalizePath(path) !== ".",
  "a folder inside the workspace, never the workspace itself",
);

const mount = z.strictObject({
  /** Folder of any size, bound read-only: an absolute path, or one relative to this file. */
  source: z.union([absolutePath, packPath], { error: "an absolute path without `..`, or one below this folder" }),
  /** Where stages see it: an absolute path, or one inside the workspace. Default: the source. */
  target: z.union([absolutePath, placeInWorkspace], { error: "an absolute path without `..`, or one inside the workspace" }).optional(),
  /** How it is checked: every byte, names and sizes, names, sizes and times, or not at all. Default stat. */
  digest: z.enum(["full", "manifest", "stat", "none"]).optional(),
});

export const contract = z.strictObject({
  schema: z.literal("trialist/environment@1"),
  name,
  /** What a researcher is told: a file (`description.md`, `.txt`), or the text itself. */
  description: z.string().default(""),
  /** Files with static priors, shown to every proposer. */
  knowledge: z.array(glob).optional(),
  surface: z.strictObject({
    /** Globs relative to the baseline folder; a candidate that touches anything else is inadmissible. */
    editable: z.union([glob.transform((one) => [one]), z.array(glob).min(1, "at least one file or glob")], {
      error: "a list of files and globs",
    }),
    /** Largest candidate, all files together. Default 1 MiB. */
    max_bytes: size.default(defaultSurfaceBytes),
    /** With `baseline: .` only: files laid beside the candidate, read-only. Default: every file that git does not ignore. */
    context: z.array(glob).optional(),
    /** Numbers in editable files that an optimizer may choose; `--researcher optuna:tpe` needs them. */
    parameters: z.array(parameter).min(1, "at least one parameter").max(100, "at most 100 parameters").optional(),
    /** With `baseline: .` only: folders in which a stage may write, such as `runs`; what it writes there vanishes with it. */
    writable: z.array(packPath).optional(),
  }),
  /** Folder of the reference candidate; `.` when the environment lies in the repository that it studies. */
  baseline: packPath.default("baseline"),
  runtime: runtime.optional(),
  data: data.optional(),
  mounts: z.array(mount).optional(),
  stages: z.array(stage).min(1, "at least one stage"),
  /** Ordered: the first decides, the next ones break ties. */
  metrics: z.array(metric).min(1, "at least one metric"),
  /** Legality; a miss is a typed status, not a low score. */
  gates: z.array(gate).optional(),
  noise: z
    .strictObject({
      /** Baseline repetitions that set the noise floor. Default 5. */
      calibrate: z.number().int().min(1).max(1000).optional(),
      /** The baseline is measured again after this many trials; 0 means never. Default 10. */
      remeasure_every: z.number().int().min(0).optional(),
    })
    .optional(),
  promotion: z
    .strictObject({
      /** any: every better value. threshold: beyond the noise. confirmed (default): better again on fresh seeds. */
      rule: z.enum(["any", "threshold", "confirmed"]).optional(),
      /** Fresh-seed pairs of candidate and leader. Default 2. */
      confirmations: z.number().int().min(1).max(100).optional(),
      /** One-sided level of every verdict. Default 0.05. */
      level: z.number().gt(0).lt(0.5).optional(),
      /** `threshold` only: a gain that counts where there is neither noise nor records. */
      minimum_gain: z.number().nonnegative().optional(),
    })
    .optional(),
  /** Further reference rows: name → folder with files as in the baseline. They use no trial. */
  references: z.record(name, packPath, { error: "a mapping of names to folders" }).optional(),
  /** After the last retry. Default: an attempt fails, a call suspends the run. */
  on_exhausted: z
    .strictObject({ attempt: z.enum(["fail", "suspend"]).optional(), call: z.enum(["fail", "suspend"]).optional() })
    .optional(),
  /** Seed of what must not vary between trials: split, subset, training, decoding. Default 0. */
  seed: z.number().int().nonnegative().optional(),
  /** Whether measurements keep their declared outputs, as blobs of the run; `best`: `trialist gc` removes what was overtaken. Default none. */
  keep_outputs: z.enum(["all", "best", "none"]).optional(),
  /** Command researchers that need no model: name → command, run in the pack's folder. */
  playbook: z
    .record(playbookName, z.string().min(1, "a shell command"), {
      error: "a mapping of names to commands, such as { reference: python playbook/propose.py }",
    })
    .optional(),
  purposes: notYet("`purposes`"),
  evidence: notYet("`evidence`"),
  roles: notYet("`roles`"),
});

/** The parsed YAML form: units read, defaults not yet filled in. */
export type ContractForm = z.output<typeof contract>;
