import { readFile, realpath } from "node:fs/promises";
import { basename, isAbsolute, join, resolve as resolvePath } from "node:path";
import { digestOf } from "../../core/protocol/canonical.js";
import { type Environment, environment, type Metric, type Stage } from "../../core/protocol/environment.js";
import { type ContractForm, defaultLimits, defaultNoise, defaultPromotion } from "./contract.js";
import { normalizeGlob, normalizePath, pathMatcher } from "./globs.js";
import { isDescriptionFile, type PackLayout } from "./pack-layout.js";

/** Fills in every default: the frozen form of an environment that passed all checks. */
export async function resolveEnvironment(form: ContractForm, layout: PackLayout): Promise<Environment> {
  const read = (path: string): Promise<string> => readText(layout, normalizePath(path));
  const knowledge = [...layout.files.keys()].filter(pathMatcher(form.knowledge ?? []));
  return environment.parse({
    schema: form.schema,
    name: form.name,
    description: isDescriptionFile(form.description) ? await read(form.description) : form.description,
    knowledge: await Promise.all(knowledge.map(async (path) => ({ path, text: await read(path) }))),
    surface: {
      editable: form.surface.editable.map(normalizeGlob),
      maxBytes: form.surface.max_bytes,
      ...(form.surface.parameters === undefined
        ? {}
        : { parameters: form.surface.parameters.map((parameter) => ({ ...parameter, file: normalizePath(parameter.file) })) }),
      ...(form.surface.writable === undefined ? {} : { writable: form.surface.writable.map(normalizePath) }),
    },
    runtime: await resolveRuntime(form, layout, read),
    data: resolveData(form.data),
    mounts: (form.mounts ?? []).map(({ source, target, digest }) => ({
      source: isAbsolute(source) ? source : resolvePath(layout.folder, source),
      target: isAbsolute(target ?? source) ? (target ?? source) : normalizePath(target ?? source),
      digest: digest ?? "stat",
    })),
    stages: form.stages.map((stage) => resolveStage(stage, form)),
    metrics: form.metrics.map((metric) => resolveMetric(metric, form)),
    gates: (form.gates ?? []).map(({ kind, ...gate }) => gate),
    noise: {
      calibrate: form.noise?.calibrate ?? defaultNoise.calibrate,
      remeasureEvery: form.noise?.remeasure_every ?? defaultNoise.remeasureEvery,
    },
    promotion: {
      rule: form.promotion?.rule ?? defaultPromotion.rule,
      confirmations: form.promotion?.confirmations ?? defaultPromotion.confirmations,
      level: form.promotion?.level ?? defaultPromotion.level,
      minimumGain: form.promotion?.minimum_gain ?? defaultPromotion.minimumGain,
    },
    references: Object.entries(form.references ?? {}).map(([name, path]) => ({ name, path: normalizePath(path) })),
    onExhausted: { attempt: form.on_exhausted?.attempt ?? "fail", call: form.on_exhausted?.call ?? "suspend" },
    seed: form.seed ?? 0,
    keepOutputs: form.keep_outputs ?? "none",
    playbook: form.playbook ?? {},
    baseline: normalizePath(form.baseline),
  } satisfies Environment);
}

async function readText(layout: PackLayout, path: string): Promise<string> {
  const file = layout.files.get(path);
  if (file === undefined) throw new RangeError(`${path} passed the checks and is not in the pack`);
  return readFile(join(layout.folder, file.source), "utf8");
}

/** A preparation writes folders of these names below its OUT; without one, the paths are the pack's own. */
function resolveData(data: ContractForm["data"]): Environment["data"] {
  if (data === undefined) return null;
  const place = (given: string | undefined, name: string): string | null => {
    if (data.prepare === undefined) return given === undefined ? null : normalizePath(given);
    return given === undefined ? name : basename(normalizePath(given));
  };
  return {
    prepare: data.prepare === undefined ? null : normalizePath(data.prepare),
    prepareRuntime: data.prepare_runtime === undefined ? null : normalizePath(data.prepare_runtime),
    released: data.released ?? null,
    public: place(data.public, "public"),
    inloop: place(data.inloop, "inloop"),
    heldout: place(data.heldout, "heldout"),
  };
}

async function resolveRuntime(
  form: ContractForm,
  layout: PackLayout,
  read: (path: string) => Promise<string>,
): Promise<Environment["runtime"]> {
  const { runtime } = form;
  if (runtime?.python !== undefined) {
    const { requires, lock } = runtime.python;
    return { kind: "python", requires, lock: normalizePath(lock), lockDigest: digestOf(await read(lock)) };
  }
  if (runtime?.use === undefined) return null;
  return { kind: "prefix", use: await realpath(resolvePath(layout.folder, runtime.use)) };
}

function resolveStage(stage: ContractForm["stages"][number], form: ContractForm): Stage {
  const limits = stage.limits ?? {};
  const wallMs = limits.wall ?? defaultLimits.wallMs;
  const cpus = limits.cpus ?? defaultLimits.cpus;
  return {
    name: stage.name,
    trust: stage.trust,
    run: stage.run,
    purpose: stage.purpose ?? impliedPurpose(stage, form),
    preflight: stage.preflight ?? (stage.trust === "candidate" && stage.name === "preflight"),
    outputs: (stage.outputs ?? []).map(normalizeGlob),
    limits: {
      wallMs,
      cpuMs: limits.cpu ?? Math.ceil(wallMs * Math.max(1, cpus)),
      memoryBytes: limits.memory ?? defaultLimits.memoryBytes,
      cpus,
      // Absent where there are none: the digests of all other environments stay what they are.
      ...(limits.gpus === undefined || limits.gpus === 0 ? {} : { gpus: limits.gpus }),
      processes: limits.processes ?? defaultLimits.processes,
      diskBytes: limits.disk ?? defaultLimits.diskBytes,
      outputBytes: limits.output ?? defaultLimits.outputBytes,
    },
    exclusive: stage.exclusive ?? false,
    repeats: stage.repeats ?? 1,
    pass: stage.env?.pass ?? [],
  };
}

/** The held-out stage measures held-out; where no evaluator says that it measures in-loop, the last silent one does. */
function impliedPurpose(stage: ContractForm["stages"][number], form: ContractForm): Stage["purpose"] {
  if (stage.trust === "held-out") return "held-out";
  const evaluators = form.stages.filter((each) => each.trust === "evaluator");
  if (evaluators.some((each) => each.purpose === "in-loop")) return null;
  return stage === evaluators.filter((each) => each.purpose === undefined).at(-1) ? "in-loop" : null;
}

function resolveMetric(metric: ContractForm["metrics"][number], form: ContractForm): Metric {
  const { name, direction, from } = metric;
  if (from === undefined || from === "measurement") return { name, direction, from: { kind: "measurement" } };
  if ("wall" in from) return { name, direction, from: { kind: "wall", stage: from.wall } };
  const candidates = form.stages.filter((stage) => stage.trust === "candidate");
  const last = candidates.at(-1);
  if ("json" in from) {
    const file = normalizePath(from.json);
    const writes = candidates.filter((stage) => pathMatcher(stage.outputs ?? [])(file)).at(-1) ?? last;
    return { name, direction, from: { kind: "json", stage: from.stage ?? writes?.name ?? "", file, key: from.key ?? name } };
  }
  return { name, direction, from: { kind: "stdout", stage: from.stage ?? last?.name ?? "", pattern: from.stdout } };
}
