import { readFile, realpath } from "node:fs/promises";
import { basename, join } from "node:path";
import picomatch from "picomatch";
import { isPlainPath } from "../../core/harness/admission.js";
import type { Environment, Metric, Stage } from "../../core/protocol/environment.js";
import { digestOf } from "../../core/protocol/canonical.js";
import type { Contract } from "./contract.js";
import { type FolderEntry, leadsOutside, listFolder } from "./folder-files.js";
import { type ParsedContract, parseContract } from "./parse.js";
import { EnvironmentInvalidError, type Problem } from "./problems.js";

/** A valid environment as it lies in its folder, not yet frozen. */
export interface LoadedEnvironment {
  readonly folder: string;
  readonly environment: Environment;
  /** Every file of the pack, by path relative to the folder. */
  readonly files: readonly FolderEntry[];
  /** Files of the baseline candidate: path inside the surface, and path inside the folder. */
  readonly baseline: readonly SurfaceFile[];
  readonly references: readonly { readonly name: string; readonly files: readonly SurfaceFile[] }[];
  /** Whether workspaces hold the rest of the folder too: an environment made in a user's own repository. */
  readonly ownFolder: boolean;
}

export interface SurfaceFile {
  readonly path: string;
  readonly source: string;
  readonly bytes: number;
  readonly executable: boolean;
}

const contractFile = "environment.yaml";

/** Loads and checks an environment. @throws EnvironmentInvalidError with all its problems */
export async function loadEnvironment(given: string): Promise<LoadedEnvironment> {
  const folder = await realpath(given).catch(() => null);
  const text = folder === null ? null : await readFile(join(folder, contractFile), "utf8").catch(() => null);
  if (folder === null || text === null) {
    throw new EnvironmentInvalidError([{ file: join(given, contractFile), line: null, column: null, message: "there is no such file; `trialist init` makes one" }]);
  }
  const parsed = parseContract(text, contractFile);
  const files = await listFolder(folder);
  const checker = new Checker(parsed, folder, files);
  await checker.links();
  const surface = checker.surface(parsed.contract.baseline, ["baseline"]);
  const references = Object.entries(parsed.contract.references).map(([name, path]) => ({ name, files: checker.surface(path, ["references", name]) }));
  checker.contract();
  checker.refuseProblems();
  const environment = await resolve(parsed.contract, folder);
  return { folder, environment, files, baseline: surface, references, ownFolder: isOwnFolder(parsed.contract.baseline) };
}

function isOwnFolder(baseline: string): boolean {
  return baseline === "." || baseline === "./";
}

class Checker {
  private readonly problems: Problem[] = [];
  private readonly regular: Map<string, FolderEntry>;

  constructor(
    private readonly parsed: ParsedContract,
    private readonly folder: string,
    private readonly files: readonly FolderEntry[],
  ) {
    this.regular = new Map(files.filter((file) => file.kind === "file").map((file) => [file.path, file]));
  }

  refuseProblems(): void {
    if (this.problems.length > 0) throw new EnvironmentInvalidError(this.problems);
  }

  private problem(message: string, path: readonly (string | number)[]): void {
    const at = this.parsed.at(path);
    this.problems.push({ file: contractFile, line: at?.line ?? null, column: at?.column ?? null, message });
  }

  /** No link leads out of the pack: it would let a candidate see, or a freeze copy, what nobody named. */
  async links(): Promise<void> {
    for (const file of this.files) {
      if (!isPlainPath(file.path)) this.problems.push({ file: JSON.stringify(file.path), line: null, column: null, message: "a file name must not hold control characters or backslashes" });
      if (file.kind === "other") this.problems.push({ file: file.path, line: null, column: null, message: "expected a regular file; found a socket, a FIFO or a device" });
      if (file.kind !== "link") continue;
      const outside = await leadsOutside(this.folder, file.path);
      if (outside !== null) this.problems.push({ file: file.path, line: null, column: null, message: `this symbolic link leads out of the environment, to ${outside}; copy the file in, or name its folder under mounts` });
    }
  }

  /** The files of a candidate folder that the editable globs match. */
  surface(baseline: string, where: readonly string[]): SurfaceFile[] {
    const prefix = isOwnFolder(baseline) ? "" : `${baseline.replace(/\/+$/, "")}/`;
    const matches = picomatch(this.parsed.contract.surface.editable, { dot: true });
    const found: SurfaceFile[] = [];
    for (const file of this.files) {
      if (!file.path.startsWith(prefix)) continue;
      const path = file.path.slice(prefix.length);
      if (!matches(path)) {
        if (prefix !== "") this.problem(`${file.path} lies in the candidate's folder and matches no editable glob`, where);
        continue;
      }
      if (file.kind === "file") found.push({ path, source: file.path, bytes: file.bytes, executable: file.executable });
      else this.problem(`${file.path} is editable and no regular file; a candidate holds regular files alone`, where);
    }
    if (found.length === 0) this.problem(`no file ${prefix === "" ? "" : `below ${baseline} `}matches ${this.parsed.contract.surface.editable.join(", ")}`, where);
    const bytes = found.reduce((sum, file) => sum + file.bytes, 0);
    if (bytes > this.parsed.contract.surface.max_bytes) this.problem(`the editable files hold ${bytes} bytes, more than surface.max_bytes`, where);
    return found;
  }

  contract(): void {
    this.editableGlobs();
    this.namedFiles();
    this.stages();
    this.metrics();
  }

  private editableGlobs(): void {
    const { contract } = this.parsed;
    const own = isOwnFolder(contract.baseline);
    contract.surface.editable.forEach((glob, index) => {
      const path = ["surface", "editable", index];
      if (glob.startsWith("/") || glob.includes("\\") || glob.split("/").includes("..")) return this.problem(`the editable glob ${glob} escapes the candidate's folder`, path);
      const matches = picomatch(glob, { dot: true });
      const literal = !/[*?[{(!]/.test(glob);
      for (const file of this.protectedFiles()) {
        if ((own || literal) && matches(file)) this.problem(`the editable glob ${glob} matches ${file}, which measures the candidate and must not be editable`, path);
      }
    });
  }

  /** What no candidate may change: the contract, the evaluator, the preparation. */
  private protectedFiles(): string[] {
    const { contract } = this.parsed;
    const words = contract.stages.filter((stage) => stage.trust !== "candidate").flatMap((stage) => stage.run.split(/[\s;&|"']+/));
    const named = words.map((word) => word.replace(/^\.\//, "")).filter((word) => this.regular.has(word));
    return [contractFile, contract.data?.prepare, contract.data?.prepare_runtime, ...named].filter((file): file is string => file !== undefined);
  }

  private namedFiles(): void {
    const { contract } = this.parsed;
    const named: [string | undefined, (string | number)[]][] = [
      [contract.description.includes("\n") || contract.description === "" ? undefined : contract.description, ["description"]],
      [contract.data?.prepare, ["data", "prepare"]],
      [contract.data?.prepare_runtime, ["data", "prepare_runtime"]],
      [contract.runtime !== undefined && "python" in contract.runtime ? contract.runtime.python.lock : undefined, ["runtime", "python", "lock"]],
    ];
    for (const [file, path] of named) {
      if (file === undefined || this.regular.has(file.replace(/^\.\//, ""))) continue;
      if (path[0] === "description" && /\s/.test(file)) continue;
      this.problem(`there is no regular file ${file} in the environment's folder`, path);
    }
    contract.knowledge.forEach((glob, index) => {
      if (!this.files.some((file) => picomatch.isMatch(file.path, glob))) this.problem(`no file matches ${glob}`, ["knowledge", index]);
    });
    if (contract.data?.prepare_runtime !== undefined && contract.data.prepare === undefined) this.problem("prepare_runtime needs prepare", ["data", "prepare_runtime"]);
    for (const name of ["public", "inloop", "heldout"] as const) {
      const given = contract.data?.[name];
      if (given === undefined || contract.data?.prepare !== undefined) continue;
      if (!this.files.some((file) => file.path.startsWith(`${given.replace(/\/+$/, "")}/`))) this.problem(`there is no folder ${given} with a file in it, and no prepare makes one`, ["data", name]);
    }
  }

  private stages(): void {
    const { contract } = this.parsed;
    const names = new Set<string>();
    contract.stages.forEach((stage, index) => {
      if (names.has(stage.name)) this.problem(`the stage name ${stage.name} is used twice`, ["stages", index, "name"]);
      names.add(stage.name);
      if (stage.trust === "trainer" || stage.trust === "interactive") this.problem(`the trust level ${stage.trust} is not carried out yet by this version of trialist; use candidate or evaluator`, ["stages", index, "trust"]);
      if (stage.trust !== "candidate" && stage.outputs.length > 0) this.problem("only a candidate's stage declares outputs", ["stages", index, "outputs"]);
      if (stage.trust !== "candidate" && stage.repeats > 1) this.problem("only a candidate's stage is repeated", ["stages", index, "repeats"]);
      for (const [position, output] of stage.outputs.entries()) {
        if (output.startsWith("/") || output.split("/").includes("..")) this.problem(`the output ${output} escapes the output folder`, ["stages", index, "outputs", position]);
      }
    });
    if (!contract.stages.some((stage) => stage.trust === "candidate")) this.problem("at least one stage must run the candidate (trust: candidate)", ["stages"]);
  }

  private metrics(): void {
    const { contract } = this.parsed;
    const stageNames = contract.stages.map((stage) => stage.name);
    const names = new Set<string>();
    contract.metrics.forEach((metric, index) => {
      const path = ["metrics", index];
      if (names.has(metric.name)) this.problem(`the metric ${metric.name} is named twice`, path);
      names.add(metric.name);
      if (metric.from.kind === "measurement" && !contract.stages.some((stage) => stage.trust === "evaluator")) this.problem(`${metric.name} comes from an evaluator's measurement, and no stage has trust: evaluator`, path);
      if (metric.from.kind !== "measurement" && metric.from.stage !== undefined && !stageNames.includes(metric.from.stage)) this.problem(`there is no stage ${metric.from.stage}; the stages are ${stageNames.join(", ")}`, [...path, "from"]);
      if (metric.from.kind === "stdout" && !compiles(metric.from.pattern)) this.problem(`${metric.from.pattern} is no regular expression`, [...path, "from"]);
    });
    contract.gates.forEach((gate, index) => {
      if ("metric" in gate && !names.has(gate.metric)) this.problem(`there is no metric ${gate.metric}; the metrics are ${[...names].join(", ")}`, ["gates", index]);
      if ("metric" in gate && gate.at_least === undefined && gate.at_most === undefined) this.problem("a gate needs at_least or at_most", ["gates", index]);
      if ("artifact" in gate && !contract.stages.some((stage) => stage.outputs.includes(gate.artifact))) this.problem(`no stage declares the output ${gate.artifact}`, ["gates", index]);
    });
  }
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, "gm").source !== "";
  } catch {
    return false;
  }
}

async function resolve(contract: Contract, folder: string): Promise<Environment> {
  const read = (path: string): Promise<string> => readFile(join(folder, path), "utf8");
  const isText = contract.description === "" || /\s/.test(contract.description);
  const knowledge = (await listFolder(folder)).filter((file) => contract.knowledge.some((glob) => picomatch.isMatch(file.path, glob)));
  const lastCandidate = contract.stages.filter((stage) => stage.trust === "candidate").at(-1)?.name ?? "";
  return {
    schema: contract.schema,
    name: contract.name,
    description: isText ? contract.description : await read(contract.description),
    knowledge: await Promise.all(knowledge.map(async (file) => ({ path: file.path, text: await read(file.path) }))),
    surface: { editable: contract.surface.editable, maxBytes: contract.surface.max_bytes },
    runtime: await resolveRuntime(contract, read),
    data: contract.data === undefined ? null : resolveData(contract.data),
    mounts: contract.mounts,
    stages: contract.stages.map((stage) => resolveStage(stage, contract)),
    metrics: contract.metrics.map((metric): Metric => ({ ...metric, from: metric.from.kind === "stdout" ? { ...metric.from, stage: metric.from.stage ?? lastCandidate } : metric.from })),
    gates: contract.gates.map((gate) => ("metric" in gate ? { metric: gate.metric, atLeast: gate.at_least ?? null, atMost: gate.at_most ?? null, validity: gate.validity } : { artifact: gate.artifact, atMostBytes: gate.at_most })),
    noise: { calibrate: contract.noise.calibrate, remeasureEvery: contract.noise.remeasure_every },
    promotion: { rule: contract.promotion.rule, confirmations: contract.promotion.confirmations, level: contract.promotion.level, minimumGain: contract.promotion.minimum_gain ?? null },
    references: Object.entries(contract.references).map(([name, path]) => ({ name, path })),
    onExhausted: contract.on_exhausted,
    seed: contract.seed,
    keepOutputs: contract.keep_outputs,
    playbook: contract.playbook,
    baseline: contract.baseline,
  };
}

function resolveData(data: NonNullable<Contract["data"]>): Environment["data"] {
  // A preparation writes three folders of fixed names; what the contract calls them says only that they are there.
  const place = (given: string | undefined, name: string): string | null => (given === undefined ? (data.prepare === undefined ? null : name) : data.prepare === undefined ? given : basename(given));
  return {
    prepare: data.prepare ?? null,
    prepareRuntime: data.prepare_runtime ?? null,
    released: data.released ?? null,
    public: place(data.public, "public"),
    inloop: place(data.inloop, "inloop"),
    heldout: place(data.heldout, "heldout"),
  };
}

async function resolveRuntime(contract: Contract, read: (path: string) => Promise<string>): Promise<Environment["runtime"]> {
  if (contract.runtime === undefined) return null;
  if ("use" in contract.runtime) return { kind: "prefix", use: contract.runtime.use };
  const { requires, lock } = contract.runtime.python;
  return { kind: "python", requires, lock, lockDigest: digestOf(await read(lock)) };
}

function resolveStage(stage: Contract["stages"][number], contract: Contract): Stage {
  const lastEvaluator = contract.stages.filter((each) => each.trust === "evaluator").at(-1);
  const implied = stage.trust === "held-out" ? "held-out" : stage === lastEvaluator ? "in-loop" : null;
  const { limits } = stage;
  return {
    name: stage.name,
    trust: stage.trust,
    run: stage.run,
    purpose: stage.purpose ?? implied,
    preflight: stage.preflight ?? stage.name === "preflight",
    outputs: stage.outputs,
    limits: {
      wallMs: limits.wall,
      cpuMs: limits.cpu ?? Math.ceil(limits.wall * Math.max(1, limits.cpus)),
      memoryBytes: limits.memory,
      cpus: limits.cpus,
      processes: limits.processes,
      diskBytes: limits.disk,
      outputBytes: limits.output,
    },
    exclusive: stage.exclusive,
    repeats: stage.repeats,
    pass: stage.env.pass,
  };
}
