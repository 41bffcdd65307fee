import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { StageExecution } from "../../core/ports/executor.js";
import type { GpuAssignment } from "../../core/ports/gpus.js";
import type { PreparedEnvironment } from "../../core/ports/prepared-environment.js";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import type { Stage } from "../../core/protocol/environment.js";
import type { AttemptFolders, WorkspaceContext } from "./attempt-folders.js";
import { Places } from "./places.js";

/** What one execution of a stage is about. */
export interface StageRun {
  readonly id: string;
  readonly stage: Stage;
  readonly repeat: number;
  /** Seed of this repeat. */
  readonly seed: number;
  readonly sandbox: "bubblewrap" | "none";
  readonly prepared: PreparedEnvironment;
  readonly folders: AttemptFolders;
  readonly manifest: CandidateManifest;
  readonly content: (digest: string) => Uint8Array;
  /** Host variables, of which the stage gets the named ones. */
  readonly hostEnvironment: Readonly<Record<string, string | undefined>>;
  /** GPUs that it has for itself. */
  readonly gpus: GpuAssignment | null;
  /** Largest declared output that is collected, in bytes. */
  readonly collectMaxBytes: number;
  /** The declared output that an online stage chose, relative to the artifacts; later evaluators find it in TRIALIST_SELECTED. */
  readonly selected?: string | null;
  /** Folder of the held-out split, for a held-out stage alone; no other caller knows it. */
  readonly heldoutFolder?: string;
}

const keptBytes = 64 * 1024;

/** Lays out the folders of a stage and describes its execution. */
export async function stageExecution(run: StageRun): Promise<StageExecution> {
  return run.stage.trust === "candidate" ? candidateExecution(run) : evaluatorExecution(run);
}

async function candidateExecution(run: StageRun): Promise<StageExecution> {
  const { stage, prepared, folders } = run;
  const places = new Places(run.sandbox);
  const { workspace, output, shown } = await folders.candidateStage(stage.name, run.repeat, run.manifest, run.content, contextOf(run));
  const collectInto = folders.artifactsOf(run.repeat, stage.repeats);
  mkdirSync(collectInto, { recursive: true });
  const inside = places.show(workspace, "workspace", "read-write");
  for (const { source, path, mode } of shown) places.show(source, join("workspace", path), mode);
  const outputInside = places.show(output, "output", "read-write");
  const data = prepared.data.public === null ? inside : places.show(prepared.data.public, "data", "read-only");
  return {
    ...common(run, places, { TRIALIST_OUTPUT: outputInside, TRIALIST_DATA: data }),
    workingDirectory: inside,
    outputFolder: stage.outputs.length === 0 ? null : output,
    outputs: stage.outputs,
    collectInto: stage.outputs.length === 0 ? null : collectInto,
    writableFolders: [workspace, output],
  };
}

/**
 * Without a sandbox nothing can be mounted, and a stage could write into a frozen file: it gets copies. A linked file is
 * safe where it belongs to somebody else than the stage's user.
 */
function contextOf({ prepared, sandbox }: StageRun): WorkspaceContext | null {
  if (prepared.contextFolder === null) return null;
  const sharing = sandbox === "none" ? "private" : process.getuid?.() === 0 ? "linked" : "copied";
  return { folder: prepared.contextFolder, sharing, writable: prepared.environment.surface.writable ?? [] };
}

async function evaluatorExecution(run: StageRun): Promise<StageExecution> {
  const { stage, prepared, folders } = run;
  const places = new Places(run.sandbox);
  const { measurement } = await folders.evaluatorStage(stage.name);
  const pack = places.show(prepared.packFolder, "pack", "read-only");
  const variables: Record<string, string> = {
    TRIALIST_ARTIFACTS: places.show(folders.artifacts, "artifacts", "read-only"),
    TRIALIST_MEASUREMENT: join(places.show(measurement, "measurement", "read-write"), "measurement.json"),
  };
  variables.TRIALIST_DATA = prepared.data.public === null ? pack : places.show(prepared.data.public, "data", "read-only");
  Object.assign(variables, showLabels(run, places));
  if (run.selected != null) variables.TRIALIST_SELECTED = join(variables.TRIALIST_ARTIFACTS ?? "", run.selected);
  return {
    ...common(run, places, variables),
    workingDirectory: pack,
    outputFolder: null,
    outputs: [],
    collectInto: null,
    writableFolders: [measurement],
  };
}

/** The labels that a trusted stage sees: the in-loop ones, or for a held-out stage both, under names of their own. */
function showLabels(run: StageRun, places: Places): Record<string, string> {
  const { inloop } = run.prepared.data;
  if (run.heldoutFolder === undefined) return inloop === null ? {} : { TRIALIST_LABELS: places.show(inloop, "labels", "read-only") };
  const heldout = { TRIALIST_LABELS: places.show(run.heldoutFolder, "labels", "read-only") };
  return inloop === null ? heldout : { ...heldout, TRIALIST_INLOOP: places.show(inloop, "inloop", "read-only") };
}

type Common = Omit<StageExecution, "workingDirectory" | "outputFolder" | "outputs" | "collectInto" | "writableFolders">;

function common(run: StageRun, places: Places, variables: Readonly<Record<string, string>>): Common {
  const { stage, prepared } = run;
  places.showAsIs(prepared.runtime.mounts);
  places.showAsIs(prepared.mounts);
  places.showAsIs(run.gpus?.mounts ?? []);
  const passed = Object.fromEntries(
    stage.pass.flatMap((name) => (run.hostEnvironment[name] === undefined ? [] : [[name, run.hostEnvironment[name]]])),
  );
  const environment: Record<string, string> = {
    ...hiddenGpus,
    ...passed,
    ...prepared.runtime.environment,
    ...gpuVariables(run.gpus, prepared.runtime.environment),
    PATH: [...prepared.runtime.path, "/usr/local/bin", "/usr/bin", "/bin"].join(":"),
    PYTHONDONTWRITEBYTECODE: "1",
    PYTHONUNBUFFERED: "1",
    TRIALIST_SEED: String(run.seed),
    ...variables,
  };
  return {
    id: run.id,
    command: fillIn(stage.run, environment),
    environment,
    mounts: places.mounts,
    ...(run.gpus === null ? {} : { devices: run.gpus.devices, gpus: run.gpus.numbers }),
    limits: stage.limits,
    graceMs: 2000,
    collectMaxBytes: run.collectMaxBytes,
    sandbox: run.sandbox,
    keepHeadBytes: keptBytes,
    keepTailBytes: keptBytes,
  };
}

/** Without a sandbox the files of all GPUs are there; these keep well-behaved libraries from them. */
const hiddenGpus = { CUDA_VISIBLE_DEVICES: "", ROCR_VISIBLE_DEVICES: "-1", HIP_VISIBLE_DEVICES: "-1" };

/** A driver's libraries come before those of the same name that a runtime brings; both are found. */
function gpuVariables(gpus: GpuAssignment | null, runtime: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (gpus === null) return {};
  const folders = [gpus.environment.LD_LIBRARY_PATH, runtime.LD_LIBRARY_PATH].filter((each) => each !== undefined && each !== "");
  return folders.length === 0 ? gpus.environment : { ...gpus.environment, LD_LIBRARY_PATH: folders.join(":") };
}

function fillIn(command: string, variables: Readonly<Record<string, string>>): string {
  return command
    .replaceAll("{seed}", variables.TRIALIST_SEED ?? "")
    .replaceAll("{data}", variables.TRIALIST_DATA ?? "")
    .replaceAll("{output}", variables.TRIALIST_OUTPUT ?? "");
}
