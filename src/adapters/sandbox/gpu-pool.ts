import { join } from "node:path";
import type { Mount } from "../../core/ports/executor.js";
import type { GpuAssignment, GpuPool } from "../../core/ports/gpus.js";
import type { GpuDrivers } from "./gpu-drivers.js";
import type { FoundGpus, Gpu } from "./gpus.js";

/** What stages see of the GPUs that were found. Without a sandbox nothing can be hidden: variables alone then say what is theirs. */
export function gpuPool(found: FoundGpus, drivers: GpuDrivers, sandbox: "bubblewrap" | "none", root = "/"): GpuPool {
  const byNumber = new Map(found.gpus.map((gpu) => [gpu.number, gpu]));
  const isolated = sandbox === "bubblewrap";
  const mounts = [...drivers.mounts, ...found.system.map((path): Mount => ({ source: join(root, path), target: path, mode: "read-only" }))];
  return {
    numbers: found.gpus.map(({ number }) => number),
    models: found.gpus.map(({ model, node }) => (model ?? node).slice(0, 200)),
    assign(numbers): GpuAssignment {
      // One that is not there any more was recorded by an owner before; its stage runs already.
      const gpus = numbers.flatMap((number) => byNumber.get(number) ?? []);
      const nodes = isolated ? [...found.control, ...gpus.map(({ node }) => node)] : [];
      return {
        numbers,
        devices: nodes.map((node) => ({ source: join(root, node), target: node })),
        mounts: isolated ? mounts : [],
        environment: { ...visible(found.vendor, gpus, isolated), ...searchPath(drivers) },
      };
    },
  };
}

/**
 * Names of the assigned GPUs, for the vendor's libraries. Inside of a sandbox there are no others, so that they are
 * counted anew from 0; a UUID is right everywhere.
 */
function visible(vendor: FoundGpus["vendor"], gpus: readonly Gpu[], isolated: boolean): Record<string, string> {
  const renumbered = gpus.map((_, place) => String(place)).join(",");
  const numbers = isolated ? renumbered : gpus.map(({ number }) => number).join(",");
  // What HIP counts is what ROCr has let through.
  if (vendor === "amd") return { ROCR_VISIBLE_DEVICES: numbers, HIP_VISIBLE_DEVICES: renumbered, CUDA_VISIBLE_DEVICES: renumbered };
  const uuids = gpus.flatMap(({ uuid }) => uuid ?? []);
  return { CUDA_VISIBLE_DEVICES: uuids.length === gpus.length ? uuids.join(",") : numbers, CUDA_DEVICE_ORDER: "PCI_BUS_ID" };
}

function searchPath({ searched }: GpuDrivers): Record<string, string> {
  return searched.length === 0 ? {} : { LD_LIBRARY_PATH: searched.join(":") };
}
