import type { Host } from "../../app/environments.js";
import { comesFromOutside, inspectRun } from "../../app/inspect.js";
import { ownRun } from "../../app/own-run.js";
import type { Project } from "../../app/project.js";
import { ownVersion } from "../../app/version.js";
import { sessionSocket } from "../mcp/session-socket.js";
import { exitCodes } from "./command.js";
import { detached } from "./detached.js";
import { driveRun } from "./drive.js";
import { finalAnswer } from "./final-answer.js";
import type { Terminal } from "./terminal.js";

/** Drives a run that was just made ready to go on: here, in a process of its own, or by whoever serves it to its clients. */
export async function goOn(project: Project, host: Host, name: string, detach: boolean, terminal: Terminal): Promise<number> {
  if (isServed(project, name)) {
    terminal.say(`${name} goes on; its trials come from outside: \`trialist mcp --run ${name}\` serves it.`);
    await finalAnswer(project, name, terminal);
    return exitCodes.ok;
  }
  if (detach) return await detached(project, name, terminal, { frozen: true, reason: "detached from its terminal" });
  const owned = await ownRun(project, host, name, {
    frozen: true,
    progress: (line) => terminal.note(line),
    serveTools: sessionSocket(await ownVersion()),
  });
  const code = await driveRun(owned, name, terminal);
  await finalAnswer(project, name, terminal);
  return code;
}

function isServed(project: Project, name: string): boolean {
  const { state, close } = inspectRun(project, name);
  close();
  return comesFromOutside(state);
}
