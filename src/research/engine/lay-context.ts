import { constants, copyFileSync, linkSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import type { WorkspacePlan } from "./workspace-plan.js";

/** Files laid out in one go: few are done at once, many let others run in between. */
const filesAtOnce = 256;

/** Makes the folders of a workspace and its own copies of the context's files, sharing blocks where the file system can. */
export async function layContext(context: string, workspace: string, plan: WorkspacePlan): Promise<void> {
  for (const folder of plan.folders) mkdirSync(join(workspace, folder), { recursive: true });
  await each(plan.copies, (path) => copyFileSync(join(context, path), join(workspace, path), constants.COPYFILE_FICLONE));
}

/** Gives frozen files a second name in the workspace. Call it when the workspace has changed hands. */
export async function linkContext(context: string, workspace: string, plan: WorkspacePlan): Promise<void> {
  await each(plan.links, (path) => link(join(context, path), join(workspace, path)));
}

function link(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch (error) {
    // Another file system, or one that counts no more names: a copy that is read-only too.
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined || !["EXDEV", "EMLINK", "EPERM", "ENOTSUP"].includes(code)) throw error;
    copyFileSync(source, target, constants.COPYFILE_FICLONE);
  }
}

async function each(paths: readonly string[], work: (path: string) => void): Promise<void> {
  for (const [index, path] of paths.entries()) {
    work(path);
    if ((index + 1) % filesAtOnce === 0) await turnOfTheLoop();
  }
}
