import { isWholeCalibration, type ReusedCalibration } from "../../protocol/calibration.js";
import type { RunEvent } from "../../protocol/events.js";
import type { RunConfiguration } from "../../protocol/run.js";
import { refuse } from "./decision.js";

/** Stands where the requests of the baseline's repetitions would. @throws RefusedError for a calibration of something else */
export function reuse(configuration: RunConfiguration, calibration: ReusedCalibration): RunEvent {
  const { environment, environmentDigest } = configuration;
  const { from } = calibration;
  if (from.environmentDigest !== environmentDigest) throw refuse("a calibration of this environment", `one of ${from.environmentDigest}`);
  if (!isWholeCalibration(calibration, configuration))
    throw refuse(`${environment.noise.calibrate} repetitions of the baseline with all metrics, the environment's seed first`, "others");
  return { type: "calibration.reused", data: calibration };
}
