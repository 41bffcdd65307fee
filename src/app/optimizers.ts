import { chmod, copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pythonRuntime } from "../adapters/environments/runtime.js";
import { type CommandResearcherOptions, commandResearcher } from "../adapters/researchers/command.js";
import type { Researcher } from "../core/ports/researcher.js";
import type { Environment } from "../core/protocol/environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { Host } from "./environments.js";

/** Optimizers of numbers: Optuna's samplers, each a command researcher in a Python runtime of its own. */
const prefix = "optuna:";
const samplers = ["tpe", "cmaes", "random"] as const;
export const optimizerNames: readonly string[] = samplers.map((sampler) => `${prefix}${sampler}`);

const sources = fileURLToPath(new URL("../../researchers/optuna/", import.meta.url));

export function isOptimizer(name: string): boolean {
  return name.startsWith(prefix);
}

/** @throws RefusedError for a sampler that is none, or an environment without numbers to choose */
export function assertOptimizer(name: string, { surface }: Environment): void {
  if (!optimizerNames.includes(name)) {
    throw new RefusedError({ expected: `one of ${optimizerNames.join(", ")}`, found: JSON.stringify(name) });
  }
  if (surface.parameters !== undefined) return;
  throw new RefusedError({
    expected: "an environment that declares the numbers that an optimizer may choose",
    found: "no surface.parameters",
    where: "environment.yaml",
    todo: 'For example: parameters: [{ name: rate, file: train.py, after: "RATE = ", low: 0.001, high: 1, log: true }]',
  });
}

/** Where the optimizers' program lies on this machine, and what runs it. */
export interface OptimizerParts extends Pick<CommandResearcherOptions, "folder" | "path" | "mounts"> {}

/** Builds the runtime, or finds it in the cache; the program is copied to where the sandbox's user may read it. */
export async function prepareOptimizers(host: Host, scratch: string, progress: (line: string) => void): Promise<OptimizerParts> {
  const { path, mounts } = await pythonRuntime(join(sources, "requirements.lock"), ">=3.11", host.cache, progress);
  const folder = join(scratch, "optuna");
  await mkdir(folder, { recursive: true, mode: 0o755 });
  await copyFile(join(sources, "propose.py"), join(folder, "propose.py"));
  await chmod(join(folder, "propose.py"), 0o644);
  return { folder, path, mounts };
}

export function optimizerNamed(
  name: string,
  parts: OptimizerParts,
  options: Pick<CommandResearcherOptions, "executor" | "sandbox" | "wallMs">,
): Researcher {
  return commandResearcher({ ...options, ...parts, name, command: `python propose.py ${name.slice(prefix.length)}` });
}
