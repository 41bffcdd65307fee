import type { RunSummary } from "./summary-schema.js";

/** ` (calibration of 2026-12-01 11:03 UTC reused, measured by night)`; empty for a calibration of the run's own. */
export function reusedText(reused: RunSummary["calibrationReused"]): string {
  if (reused === null) return "";
  const when = new Date(reused.measuredAt).toISOString().slice(0, 16).replace("T", " ");
  return ` (calibration of ${when} UTC reused, measured by ${reused.run})`;
}
