import { type DetachOptions, detachRun } from "../../app/detach.js";
import type { Project } from "../../app/project.js";
import { exitCodes } from "./command.js";
import type { Terminal } from "./terminal.js";

/** Leaves a run to a process of its own, and says how to look at it. */
export async function detached(project: Project, name: string, terminal: Terminal, how: DetachOptions): Promise<number> {
  const { pid, log } = await detachRun(project, name, process.argv[1] ?? "", how);
  terminal.say(`${name} goes on in process ${pid}: \`trialist attach ${name}\` looks on, \`trialist pause ${name} --reason …\` stops it.`);
  terminal.data({ run: name, pid, log });
  return exitCodes.ok;
}
