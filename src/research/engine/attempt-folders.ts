import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import { TrialistError } from "../../core/protocol/errors.js";

/** A candidate's file that cannot lie where it wants to lie, because of a file or folder that is not the candidate's. */
export class CandidateLayoutError extends TrialistError {
  readonly kind = "candidate";
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
    context: string | null,
  ): Promise<{ workspace: string; output: string }> {
    const folder = join(this.root, `${stage}-${repeat}`);
    makeAnew(folder);
    const workspace = join(folder, "workspace");
    const output = join(folder, "output");
    mkdirSync(workspace);
    mkdirSync(output);
    if (context !== null) await cp(context, workspace, { recursive: true });
    for (const file of manifest.files) place(workspace, file, content(file.digest));
    await this.give(folder);
    return { workspace, output };
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
    throw new CandidateLayoutError(
      {
        expected: "room for the candidate's file",
        found: code === "EISDIR" ? "a folder of the environment" : "a file of the environment where its folder would be",
        where: file.path,
        todo: "Choose another path.",
      },
      { cause },
    );
  }
}

/** An empty folder, whatever an interrupted run left there. */
function makeAnew(folder: string): void {
  if (existsSync(folder)) rmSync(folder, { recursive: true });
  mkdirSync(folder, { recursive: true });
}
