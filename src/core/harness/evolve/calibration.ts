import { isSelfReported } from "../../protocol/environment.js";
import { configurationOf, trialOf } from "../state.js";
import type { EventHandlers } from "./handlers.js";

/** Repetitions of the baseline that another run measured. */
export const calibrationHandlers = {
  "calibration.reused": (state, { from, results }) => {
    const baseline = trialOf(state, "t0");
    const [first] = results;
    baseline.values = first?.values ?? null;
    baseline.records = first?.records ?? null;
    baseline.selfReported = configurationOf(state).environment.metrics.some(isSelfReported);
    for (const { pair, seed, values, records, wallMs, cpuMs } of results) {
      baseline.results.push({ measurement: `reused-${pair + 1}`, reason: "calibration", pair, round: 0, seed, values, records, wallMs });
      baseline.cpuMs += cpuMs;
      for (const ms of Object.values(wallMs)) baseline.wallMs += ms;
    }
    state.calibrationReused = { run: from.run, measuredAt: from.measuredAt, checked: false };
  },
} satisfies Partial<EventHandlers>;
