import type { Device, Mount } from "./executor.js";

/** What a stage sees of the GPUs that it has for itself. */
export interface GpuAssignment {
  /** Their numbers on this machine. */
  readonly numbers: readonly number[];
  readonly devices: readonly Device[];
  /** What their driver needs and the sandbox does not show anyway, read-only. */
  readonly mounts: readonly Mount[];
  readonly environment: Readonly<Record<string, string>>;
}

/** The GPUs of this machine that stages may have. */
export interface GpuPool {
  readonly numbers: readonly number[];
  /** What they are, in that order, for the record. */
  readonly models: readonly string[];
  assign(numbers: readonly number[]): GpuAssignment;
}

export const noGpuPool: GpuPool = { numbers: [], models: [], assign: (numbers) => ({ numbers, devices: [], mounts: [], environment: {} }) };
