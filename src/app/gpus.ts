import { findGpuDrivers } from "../adapters/sandbox/gpu-drivers.js";
import { gpuPool } from "../adapters/sandbox/gpu-pool.js";
import { type FoundGpus, findGpus } from "../adapters/sandbox/gpus.js";
import { type GpuPool, noGpuPool } from "../core/ports/gpus.js";
import type { Environment } from "../core/protocol/environment.js";
import { RefusedError, TrialistError } from "../core/protocol/errors.js";
import type { Host } from "./environments.js";

/** The machine has fewer GPUs than a stage takes. */
class MissingGpusError extends TrialistError {
  readonly kind = "infrastructure";
}

/** Names the GPUs that trialist may use, such as `0,2`; empty: none. Unset: all. */
const gpusVariable = "TRIALIST_GPUS";

type Where = Pick<Host, "variables" | "deviceRoot">;

/** The most GPUs that one stage of this environment takes. */
function gpusNeeded(environment: Environment): number {
  return Math.max(0, ...environment.stages.map((stage) => stage.limits.gpus ?? 0));
}

/**
 * The GPUs for stages of an environment; nothing is looked for where none takes one.
 * @throws MissingGpusError when a stage could never start here, RefusedError for a TRIALIST_GPUS that says nothing
 */
export function gpusFor(environment: Environment, host: Where, sandbox: "bubblewrap" | "none"): GpuPool {
  const needed = gpusNeeded(environment);
  if (needed === 0) return noGpuPool;
  const root = host.deviceRoot ?? "/";
  const found = allowed(findGpus(root), host.variables[gpusVariable]);
  if (found.gpus.length < needed) {
    const stage = environment.stages.find(({ limits }) => limits.gpus === needed);
    throw new MissingGpusError({
      expected: `${needed} GPUs, which stage ${stage?.name} of ${environment.name} takes`,
      found: [inWords(found), ...found.problems].join("; "),
      where: "this machine",
      todo: "`trialist doctor` shows what is there. Lower `gpus` in environment.yaml, or go where there are more.",
    });
  }
  return gpuPool(found, findGpuDrivers(root), sandbox, root);
}

function allowed(found: FoundGpus, text: string | undefined): FoundGpus {
  if (text === undefined) return found;
  const names = text.split(",").map((name) => name.trim());
  const numbers = text.trim() === "" ? [] : names.map((name) => (/^\d+$/.test(name) ? Number(name) : Number.NaN));
  const there = found.gpus.map(({ number }) => number);
  const wrong = numbers.findIndex((number) => !there.includes(number));
  if (wrong >= 0)
    throw new RefusedError({
      expected: `numbers of GPUs of this machine, divided by commas: ${there.join(", ") || "there are none"}`,
      found: JSON.stringify(names[wrong]),
      where: gpusVariable,
    });
  return { ...found, gpus: found.gpus.filter(({ number }) => numbers.includes(number)) };
}

function inWords({ gpus }: FoundGpus): string {
  if (gpus.length === 0) return "none that may be used";
  return gpus
    .map(({ number, node, model, uuid }) => `${number}: ${[model, node, uuid].filter((each) => each !== null).join(" ")}`)
    .join("; ");
}

/** For `trialist doctor`. A machine without GPUs lacks nothing. */
export function examineGpus(host: Where) {
  const root = host.deviceRoot ?? "/";
  const check = { name: "gpus", required: false };
  try {
    const found = allowed(findGpus(root), host.variables[gpusVariable]);
    if (found.gpus.length === 0 && found.problems.length === 0) return { ...check, ok: true, found: "none", mend: "" };
    const drivers = findGpuDrivers(root);
    const libraries = `${drivers.known} driver libraries${drivers.searched.length === 0 ? "" : `, more in ${drivers.searched.join(", ")}`}`;
    const ok = found.problems.length === 0 && drivers.known + drivers.searched.length > 0;
    const mend = [...found.problems, ...(ok ? [] : ["the driver's libraries have to be known to ldconfig"])][0] ?? "";
    return { ...check, ok, found: `${inWords(found)}; ${libraries}`, mend: ok ? "" : mend };
  } catch (error) {
    if (!(error instanceof TrialistError)) throw error;
    return { ...check, ok: false, found: error.facts.found, mend: error.message };
  }
}
