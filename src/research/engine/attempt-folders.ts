import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import { TrialistError } from "../../core/protocol/errors.js";
import { contextTree, inTheWay } from "./context-tree.js";
import { layContext, linkContext } from "./lay-context.js";
import { foldersOf, planWorkspace, type Sharing, type WorkspacePlan } from "./workspace-plan.js";

/** A candidate's file that cannot lie where it wants to lie, because of a file or folder that is not the candidate's. */
export class CandidateLayoutError extends TrialistError {
  readonly kind = "candidate";
}

/** The environment's files beside the candidate: a frozen folder, and what may become of its small files. */
export interface WorkspaceContext {
  readonly folder: string;
  readonly sharing: Sharing;
  /** Folders that a stage may write to beside those of the candidate's files. */
  readonly writable: readonly string[];
}

/** A candidate's stage, laid out. `shown`: what is mounted over the workspace, by paths inside of it. */
export interface CandidateFolders {
  readonly workspace: string;
  readonly output: string;
  readonly shown: readonly { readonly source: string; readonly path: string; readonly mode: "read-only" | "read-write" }[];
}

/** Hands a folder to the user that stages run as; comes from the executor's adapter. */
export type GiveToSandbox = (folder: string) => Promise<void>;

/**
 * The folders of one attempt, all below one root that vanishes with it. Their few small files are laid out in one go: a
 * slot stands idle meanwhile, and on a busy machine every trip through the thread pool takes longer than the work.
 */
export class AttemptFolders {
  constructor(
    readonly root: string,
    private readonly give: GiveToSandbox,
  ) {}

  get artifacts(): string {
    return join(this.root, "artifacts");
  }

  artifactsOf(repeat: number, repeats: number): string {
    return repeats === 1 ? this.artifacts : join(this.artifacts, `repeat-${repeat}`);
  }

  /** A fresh workspace with the candidate's files over the context's, and an empty output folder. Nothing of an earlier stage is in it. */
  async candidateStage(
    stage: string,
    repeat: number,
    manifest: CandidateManifest,
    content: (digest: string) => Uint8Array,
    context: WorkspaceContext | null,
  ): Promise<CandidateFolders> {
    const folder = join(this.root, `${stage}-${repeat}`);
    try {
      return await this.layOut(folder, manifest, content, context);
    } catch (error) {
      // On a full disk, what was begun would take the room that is missing.
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  private async layOut(
    folder: string,
    manifest: CandidateManifest,
    content: (digest: string) => Uint8Array,
    context: WorkspaceContext | null,
  ): Promise<CandidateFolders> {
    makeAnew(folder);
    const workspace = join(folder, "workspace");
    const output = join(folder, "output");
    mkdirSync(workspace);
    mkdirSync(output);
    const plan = context === null ? null : planFor(context, manifest);
    if (context !== null && plan !== null) await layContext(context.folder, workspace, plan);
    for (const file of manifest.files) place(workspace, file, content(file.digest));
    await this.give(folder);
    // Only now: these are the frozen files themselves, which must change hands never.
    if (context !== null && plan !== null) await linkContext(context.folder, workspace, plan);
    return { workspace, output, shown: context === null || plan === null ? [] : shownOver(context.folder, workspace, plan) };
  }

  /** An empty folder that an evaluator's measurement file goes to. */
  async evaluatorStage(stage: string): Promise<{ measurement: string }> {
    const folder = join(this.root, `${stage}-1`);
    makeAnew(folder);
    const measurement = join(folder, "measurement");
    mkdirSync(measurement);
    mkdirSync(this.artifacts, { recursive: true });
    await this.give(folder);
    return { measurement };
  }

  async remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }
}

/** By context, and by the folders that the candidate has files in: nearly every candidate of a run has the same. */
const plans = new Map<string, WorkspacePlan>();
const plansAtMost = 32;

/** @throws CandidateLayoutError where the environment's own files are in the way */
function planFor(context: WorkspaceContext, manifest: CandidateManifest): WorkspacePlan {
  const tree = contextTree(context.folder);
  for (const { path } of manifest.files) {
    const obstacle = inTheWay(tree, path);
    if (obstacle !== null) throw noRoom(path, obstacle === "a folder");
  }
  const folders = foldersOf(manifest);
  const key = JSON.stringify([context, folders]);
  const found = plans.get(key);
  if (found !== undefined) return found;
  const [oldest] = plans.keys();
  if (plans.size >= plansAtMost && oldest !== undefined) plans.delete(oldest);
  const plan = planWorkspace(tree, folders, context.writable, context.sharing);
  plans.set(key, plan);
  return plan;
}

function shownOver(context: string, workspace: string, plan: WorkspacePlan): CandidateFolders["shown"] {
  return plan.shown.map(({ path, from }) =>
    from === "context"
      ? { source: join(context, path), path, mode: "read-only" }
      : { source: join(workspace, path), path, mode: "read-write" },
  );
}

/** What a system says when a file is wanted where a folder is, or the other way round. */
const conflicts: ReadonlySet<string> = new Set(["EISDIR", "ENOTDIR", "EEXIST"]);

/** @throws CandidateLayoutError where the environment's own files are in the way; what the system throws otherwise */
function place(workspace: string, file: CandidateManifest["files"][number], bytes: Uint8Array): void {
  const path = join(workspace, file.path);
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
    if (file.executable) chmodSync(path, 0o755);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === undefined || !conflicts.has(code)) throw cause;
    throw noRoom(file.path, code === "EISDIR", cause);
  }
}

function noRoom(path: string, isFolder: boolean, cause?: unknown): CandidateLayoutError {
  return new CandidateLayoutError(
    {
      expected: "room for the candidate's file",
      found: isFolder ? "a folder of the environment" : "a file of the environment where its folder would be",
      where: path,
      todo: "Choose another path.",
    },
    { cause },
  );
}

/** An empty folder, whatever an interrupted run left there. */
function makeAnew(folder: string): void {
  if (existsSync(folder)) rmSync(folder, { recursive: true });
  mkdirSync(folder, { recursive: true });
}
