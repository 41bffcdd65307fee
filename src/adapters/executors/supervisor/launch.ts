import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import type { Socket } from "node:net";
import type { StageExecution } from "../../../core/ports/executor.js";
import { type BubblewrapFeatures, bubblewrapArguments, stageEnvironment } from "../../sandbox/bubblewrap.js";
import type { ExecutionGroup } from "../../sandbox/cgroup.js";
import { sandboxUser } from "../../sandbox/identity.js";
import { openForReading, openForWriting, type PipeEnds, reader, writer } from "./pipes.js";

/** Environment variable that marks the processes of an execution without a sandbox. */
export const markerVariable = "TRIALIST_EXECUTION";

const statusFd = 3;
const firstJoinFd = 4;
const openFilesAtMost = 4096;
/** The kernel's own limit on CPU time is a second net, for the case that we are too starved to look. */
const spareCpuSeconds = 2;

/** A started process with our ends of its standard streams. */
export interface Launched {
  readonly child: ChildProcess;
  readonly startedAt: number;
  readonly pid: number;
  readonly stdout: Socket;
  readonly stderr: Socket;
  readonly stdin: Socket | null;
}

export interface LaunchPlan {
  readonly execution: StageExecution;
  /** Null without a sandbox. */
  readonly features: BubblewrapFeatures | null;
  readonly group: ExecutionGroup;
  readonly limitProcessesInside: boolean;
  readonly statusFile: string;
  readonly marker: string | null;
  /** Named pipes for standard output, standard error and, when there is one, standard input. */
  readonly pipes: readonly string[];
}

/**
 * One shell joins the cgroups, sets what the process inherits and becomes bubblewrap by exec, so that a start costs one
 * small process more than bubblewrap alone. If it cannot join, nothing is started: an unlimited stage must not run.
 */
function startScript(plan: LaunchPlan): string {
  const joins = plan.group.joinFiles.map((_, index) => `echo 0 >&${firstJoinFd + index}`);
  const close = plan.group.joinFiles.map((_, index) => `${firstJoinFd + index}>&-`).join(" ");
  const cpuSeconds = Math.ceil(plan.execution.limits.cpuMs / 1000) + spareCpuSeconds;
  const prepare = ["ulimit -c 0", lower(`-t ${cpuSeconds}`), lower(`-n ${openFilesAtMost}`), ...joins].join(" && ");
  const become = plan.features === null ? `echo started >&${statusFd} && exec /bin/sh -c "$1" ${statusFd}>&-` : `exec bwrap "$@"`;
  return `{ ${prepare}; } || exit 125; ${become} ${close}`;
}

/** Where the machine's own limit is lower still, that one stays. */
function lower(limit: string): string {
  return `{ ulimit ${limit} 2>/dev/null || :; }`;
}

function processArguments(plan: LaunchPlan): string[] {
  const { execution, features, limitProcessesInside } = plan;
  if (features === null) return [execution.command];
  return bubblewrapArguments(execution, features, { statusFd, limitProcessesInside });
}

function processEnvironment(plan: LaunchPlan): Record<string, string> {
  // Bubblewrap clears its own environment for the stage; this one only finds bubblewrap.
  if (plan.features !== null) return { PATH: process.env["PATH"] ?? "/usr/bin:/bin" };
  return { ...stageEnvironment(plan.execution), ...(plan.marker === null ? {} : { [markerVariable]: plan.marker }) };
}

/** Starts the process. Throws when not even that is possible; whether bubblewrap then manages shows at the end. */
export async function launch(plan: LaunchPlan): Promise<Launched> {
  const { execution, group } = plan;
  const opened: number[] = [];
  const ours: PipeEnds[] = [];
  const keep = (descriptor: number): number => {
    opened.push(descriptor);
    return descriptor;
  };
  const pipe = (ends: PipeEnds): PipeEnds => {
    ours.push(ends);
    keep(ends.child);
    return ends;
  };
  try {
    const [outPath = "", errPath = "", inPath] = plan.pipes;
    const out = pipe(openForReading(outPath));
    const err = pipe(openForReading(errPath));
    const input = inPath === undefined ? null : pipe(openForWriting(inPath));
    const status = keep(openSync(plan.statusFile, "wx", 0o600));
    const joins = group.joinFiles.map((file) => keep(openSync(file, "w")));
    const startedAt = performance.now();
    const child = spawn("/bin/sh", ["-c", startScript(plan), "trialist-stage", ...processArguments(plan)], {
      cwd: plan.features === null ? execution.workingDirectory : "/",
      env: processEnvironment(plan),
      detached: true,
      stdio: [input?.child ?? "ignore", out.child, err.child, status, ...joins],
      // Dropping the user here costs nothing; the cgroup files are open already, and joining asks who opened them.
      ...(plan.features === null ? {} : (sandboxUser() ?? {})),
    });
    const { pid } = child;
    if (pid === undefined) throw await new Promise<Error>((resolve) => child.once("error", resolve));
    const stdin = input === null ? null : feed(writer(input), execution.stdin ?? "");
    return { child, pid, startedAt, stdout: reader(out), stderr: reader(err), stdin };
  } catch (error) {
    for (const ends of ours) closeSync(ends.ours);
    throw error;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

function feed(pipe: Socket, text: string): Socket {
  // A stage may end, or close its input, without reading it.
  pipe.on("error", () => pipe.destroy());
  pipe.end(text, () => pipe.destroy());
  return pipe;
}
