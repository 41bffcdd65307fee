import { createRun, type RunRequest } from "../src/app/create-run.js";
import type { Host } from "../src/app/environments.js";
import { type InspectedRun, inspectRun } from "../src/app/inspect.js";
import { ownRun } from "../src/app/own-run.js";
import type { Project } from "../src/app/project.js";

/** Runs one run to its end and opens it for reading. A run of that name that is there already is gone on with, or read. */
export async function runOnce(project: Project, host: Host, request: RunRequest & { readonly name: string }): Promise<InspectedRun> {
  if (!project.runNames().includes(request.name)) await createRun(project, host, request);
  const { phase } = peek(project, request.name);
  if (phase !== "finished" && phase !== "cancelled") {
    const owned = await ownRun(project, host, request.name, { frozen: true, progress: (line) => process.stderr.write(`${line}\n`) });
    owned.runner.command({ type: "resume", reason: "a study goes on" });
    await owned.runner.work().finally(() => owned.close());
  }
  return inspectRun(project, request.name);
}

function peek(project: Project, name: string): { phase: string } {
  const inspected = inspectRun(project, name);
  inspected.close();
  return { phase: inspected.state.phase };
}
