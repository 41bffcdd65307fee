import type { RunState } from "../../core/harness/state.js";
import type { Evidence } from "./evidence.js";
import type { RunSummary } from "./summary.js";

/** What every section of `report.md` is made of. */
export interface Subject {
  readonly state: RunState;
  readonly summary: RunSummary;
  readonly evidence: Evidence;
}
