import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Socket } from "node:net";
import type { StageExecution } from "../../../core/ports/executor.js";
import { type BubblewrapFeatures, bubblewrapArguments, stageEnvironment } from "../../sandbox/bubblewrap.js";
import type { ExecutionGroup } from "../../sandbox/cgroup.js";
import { sandboxUser } from "../../sandbox/identity.js";
import { openForReading, openForWriting, type PipeEnds, type PipePool, reader, writer } from "./pipes.js";

/** Environment variable that marks the processes of an execution without a sandbox. */
const markerVariable = "TRIALIST_EXECUTION";

const statusFd = 3;
const inputFd = 4;
const firstJoinFd = 5;
const openFilesAtMost = 4096;
/** The kernel's own limit on CPU time is a second net, for the case that we are too starved to look. */
const spareCpuSeconds = 2;

/** A shell that has joined its cgroups and waits to be told what to become. */
export interface Parked {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly script: Socket;
  readonly output: PipeEnds;
  readonly errors: PipeEnds;
  readonly input: PipeEnds;
  /** All named pipes in use, the script's included. */
  readonly paths: readonly string[];
}

/** A started stage with our ends of its standard streams. */
export interface Launched extends Parked {
  readonly startedAt: number;
  readonly stdout: Socket;
  readonly stderr: Socket;
  readonly stdin: Socket;
}

/**
 * Starts the one process that a start costs beside bubblewrap, ahead of time: a shell, already the sandbox's user and
 * in its cgroups, that reads its script from a pipe. It ends by itself when we die, because the pipe does.
 */
export async function park(pool: PipePool, group: ExecutionGroup, status: number, sandboxed: boolean): Promise<Parked> {
  const paths = await pool.take(4);
  const [scriptPath = "", outputPath = "", errorsPath = "", inputPath = ""] = paths;
  const script = openForWriting(scriptPath);
  const output = openForReading(outputPath);
  const errors = openForReading(errorsPath);
  const input = openForWriting(inputPath);
  const theirs = [script.child, output.child, errors.child, input.child];
  try {
    const joins = group.joinFiles.map((file) => {
      const descriptor = openSync(file, "w");
      theirs.push(descriptor);
      return descriptor;
    });
    const child = spawn("/bin/sh", ["-s"], {
      cwd: "/",
      // Bubblewrap is looked for on this path; the stage gets an environment of its own.
      env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin" },
      detached: true,
      stdio: [script.child, output.child, errors.child, status, input.child, ...joins],
      // Dropping the user here costs nothing; the cgroup files are open already, and joining asks who opened them.
      ...(sandboxed ? (sandboxUser() ?? {}) : {}),
    });
    const { pid } = child;
    if (pid === undefined) throw await new Promise<Error>((resolve) => child.once("error", resolve));
    const told = writer(script);
    told.on("error", () => told.destroy());
    told.write(joinScript(group));
    return { child, pid, script: told, output, errors, input, paths };
  } catch (error) {
    for (const ends of [script, output, errors, input]) closeSync(ends.ours);
    throw error;
  } finally {
    for (const descriptor of theirs) closeSync(descriptor);
  }
}

/** If it cannot join, it ends and nothing is started: an unlimited stage must not run. */
function joinScript(group: ExecutionGroup): string {
  const joins = group.joinFiles.map((_, index) => `echo 0 >&${firstJoinFd + index}`);
  const close = group.joinFiles.map((_, index) => ` ${firstJoinFd + index}>&-`).join("");
  return `{ ${["ulimit -c 0", ...joins].join(" && ")}; } || exit 125; exec${close}\n`;
}

/** Tells a parked shell to become the stage. From here on time counts. */
export function go(
  parked: Parked,
  execution: StageExecution,
  features: BubblewrapFeatures | null,
  how: { limitProcessesInside: boolean; marker: string | null },
): Launched {
  const become =
    features === null
      ? withoutSandbox(execution, how.marker)
      : `exec bwrap ${bubblewrapArguments(execution, features, { statusFd, limitProcessesInside: how.limitProcessesInside }).map(quoted).join(" ")}`;
  const cpuSeconds = Math.ceil(execution.limits.cpuMs / 1000) + spareCpuSeconds;
  const from = execution.stdin === undefined ? "</dev/null" : `<&${inputFd}`;
  const startedAt = performance.now();
  parked.script.end(`${lower(`-t ${cpuSeconds}`)}; ${lower(`-n ${openFilesAtMost}`)}; ${become} ${from} ${inputFd}<&-\n`);
  const stdin = writer(parked.input);
  // A stage may end, or close its input, without reading it.
  stdin.on("error", () => stdin.destroy());
  if (execution.stdin === undefined) stdin.destroy();
  else stdin.end(execution.stdin, () => stdin.destroy());
  return { ...parked, startedAt, stdin, stdout: reader(parked.output), stderr: reader(parked.errors) };
}

/** Where the machine's own limit is lower still, that one stays. */
function lower(limit: string): string {
  return `ulimit ${limit} 2>/dev/null`;
}

function withoutSandbox(execution: StageExecution, marker: string | null): string {
  const environment = { ...stageEnvironment(execution), ...(marker === null ? {} : { [markerVariable]: marker }) };
  const variables = Object.entries(environment).map(([name, value]) => quoted(`${name}=${value}`));
  return (
    `cd ${quoted(execution.workingDirectory)} && echo started >&${statusFd} && ` +
    `exec env -i ${variables.join(" ")} /bin/sh -c ${quoted(execution.command)} ${statusFd}>&-`
  );
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Ends a shell that was never told anything. */
export function unpark(parked: Parked): void {
  parked.script.destroy();
  parked.child.kill("SIGKILL");
  for (const ends of [parked.output, parked.errors, parked.input]) closeSync(ends.ours);
}
