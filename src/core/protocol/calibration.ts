import { z } from "zod";
import type { Environment } from "./environment.js";
import { blobReference, runName } from "./ids.js";
import { metricValues } from "./measurement.js";

/** The baseline's repetitions of an earlier run of the same environment on the same machine, taken over instead of measured. */
export const reusedCalibration = z.strictObject({
  from: z.strictObject({
    /** Its name, on its own project's shelf: information, nothing is looked up by it. */
    run: runName,
    environmentDigest: z.string().length(64),
    /** When that run was calibrated: milliseconds since 1970. */
    measuredAt: z.number().nonnegative(),
    host: z.strictObject({
      platform: z.string(),
      cpus: z.number().int().positive(),
      cpuModel: z.string(),
      /** Models of the GPUs that its stages could have; absent where none took one. */
      gpus: z.array(z.string().max(200)).optional(),
    }),
  }),
  results: z
    .array(
      z.strictObject({
        pair: z.number().int().nonnegative(),
        seed: z.number().int().nonnegative(),
        values: metricValues,
        records: blobReference.nullable(),
        /** By stage. */
        wallMs: z.record(z.string(), z.number().nonnegative()),
        cpuMs: z.number().nonnegative(),
      }),
    )
    .min(1)
    .max(1000),
});
export type ReusedCalibration = z.infer<typeof reusedCalibration>;

/** Whether it holds what a run would have measured: of this environment, every repetition in order, the environment's seed first, all metrics. */
export function isWholeCalibration(
  { from, results }: ReusedCalibration,
  { environment, environmentDigest }: { readonly environment: Environment; readonly environmentDigest: string },
): boolean {
  return (
    from.environmentDigest === environmentDigest &&
    results.length === environment.noise.calibrate &&
    results[0]?.seed === environment.seed &&
    results.every(({ pair, values }, index) => pair === index && environment.metrics.every(({ name }) => Number.isFinite(values[name])))
  );
}
