import { isAbsolute } from "node:path";
import type { Device, StageExecution } from "../../core/ports/executor.js";
import { stageLimits } from "../../core/protocol/outcome.js";
import { InvalidExecutionError } from "./errors.js";

/** The kernel's limit for one argument of a program; a variable is passed as one, and so is the command. */
const longestArgumentBytes = 128 * 1024 - 1;

/** What a shell and bubblewrap need for themselves. */
const leastMemoryBytes = 4 * 2 ** 20;

function refuse(execution: StageExecution, expected: string, found: string, todo: string): never {
  throw new InvalidExecutionError({ where: execution.id, expected, found, todo });
}

function assertText(execution: StageExecution, name: string, text: string): void {
  if (text.includes("\0")) refuse(execution, `${name} without NUL bytes`, "one", "Take it out.");
  const bytes = Buffer.byteLength(text);
  if (bytes > longestArgumentBytes) {
    refuse(execution, `${name} of at most ${longestArgumentBytes} bytes`, `${bytes} bytes`, "Put it into a file or on standard input.");
  }
}

function assertPath(execution: StageExecution, name: string, path: string): void {
  assertText(execution, name, path);
  if (!isAbsolute(path) || path.split("/").includes("..")) {
    refuse(execution, `an absolute path without '..' for ${name}`, JSON.stringify(path), "Resolve it first.");
  }
}

/** Refuses what no machine could run, before anything is recorded. */
export function assertValidExecution(execution: StageExecution): void {
  const limits = stageLimits.safeParse(execution.limits);
  if (!limits.success) {
    refuse(execution, "a number above 0 for every limit", limits.error.issues[0]?.path.join(".") ?? "none", "Give the missing limit.");
  }
  if (execution.limits.memoryBytes < leastMemoryBytes) {
    refuse(
      execution,
      `a memory limit of at least ${leastMemoryBytes} bytes`,
      String(execution.limits.memoryBytes),
      "Raise it; a shell needs that much.",
    );
  }
  assertText(execution, "a command", execution.command);
  assertPath(execution, "the working directory", execution.workingDirectory);
  for (const [name, value] of Object.entries(execution.environment)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) refuse(execution, "a name for a variable", JSON.stringify(name), "Rename it.");
    assertText(execution, `a value for ${name}`, `${name}=${value}`);
  }
  for (const mount of execution.mounts) assertMount(execution, mount);
  for (const device of execution.devices ?? []) assertDevice(execution, device);
  for (const folder of execution.writableFolders) assertPath(execution, "a writable folder", folder);
  assertOutputs(execution);
}

function assertMount(execution: StageExecution, mount: StageExecution["mounts"][number]): void {
  assertPath(execution, "the source of a mount", mount.source);
  assertPath(execution, "the target of a mount", mount.target);
  if (mount.target === "/" || /^\/(proc|dev)(\/|$)/.test(mount.target)) {
    refuse(execution, "a target that is not the sandbox's own", mount.target, "Mount it elsewhere.");
  }
  if (execution.sandbox === "none" && mount.source !== mount.target) {
    refuse(
      execution,
      "source and target to be one path, because without a sandbox nothing can be mounted",
      `${mount.source} at ${mount.target}`,
      "Translate the execution with onHostPaths().",
    );
  }
}

/** A disk, a terminal or the kernel's memory would be a way out. */
function assertDevice(execution: StageExecution, { source, target }: Device): void {
  assertPath(execution, "the source of a device", source);
  assertPath(execution, "the target of a device", target);
  const isGpu = /^\/dev\/(nvidia\d+|nvidiactl|nvidia-(uvm|uvm-tools|modeset|caps)|kfd|dri\/renderD\d+|dxg)$/.test(target);
  if (!isGpu || !source.endsWith(target))
    refuse(execution, "a GPU's device file, at its own path", `${source} at ${target}`, "Take it out.");
  if (execution.sandbox === "none")
    refuse(execution, "no devices, because without a sandbox nothing can be mounted", target, "Take it out.");
}

function assertOutputs(execution: StageExecution): void {
  const { outputs, outputFolder, collectInto } = execution;
  if (outputs.length > 0 && (outputFolder === null || collectInto === null)) {
    refuse(execution, "a folder to look for outputs and one to collect them into", "outputs without", "Give both folders.");
  }
  if (outputFolder !== null) assertPath(execution, "the output folder", outputFolder);
  if (collectInto !== null) assertPath(execution, "the folder to collect into", collectInto);
  for (const glob of outputs) {
    if (isAbsolute(glob) || glob.split("/").includes("..")) {
      refuse(execution, "outputs inside the output folder", JSON.stringify(glob), "Declare it relative to that folder.");
    }
  }
}
