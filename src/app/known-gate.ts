import { keep, type MeasurementKey, readKept } from "../adapters/environments/kept-measurements.js";
import { type Gate, gate } from "../core/protocol/gate.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import type { Host } from "./environments.js";

/** What the errors of a rule hang on: what is measured, by which rule, on which machine. */
export type GateSubject = Pick<RunConfiguration, "environmentDigest" | "promotion" | "host">;

/** What makes a host another one for its measurements. */
export function hostFingerprint({
  platform,
  cpus,
  cpuModel,
}: RunConfiguration["host"]): Pick<RunConfiguration["host"], "platform" | "cpus" | "cpuModel"> {
  return { platform, cpus, cpuModel };
}

/** The errors of this rule as measured here before; null: never. */
export function knownGate(host: Host, subject: GateSubject, note: (line: string) => void): Promise<Gate | null> {
  return readKept(host.cache, keyOf(subject), gate, note);
}

export function rememberGate(host: Host, subject: GateSubject, measured: Gate, note: (line: string) => void): Promise<void> {
  return keep(host.cache, keyOf(subject), measured, note);
}

function keyOf({ environmentDigest, promotion, host }: GateSubject): MeasurementKey {
  return { kind: "gate", environmentDigest, promotion, host: hostFingerprint(host) };
}
