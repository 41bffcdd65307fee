import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { keep, type MeasurementKey, readKept } from "../adapters/environments/kept-measurements.js";
import { type Gate, gate } from "../core/protocol/gate.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import type { Host } from "./environments.js";
import { type MeasuredSubject, measurementKey } from "./measurement-key.js";

/** What the errors of a rule hang on: the rule, and all that the measurements do that it judges. */
export type GateSubject = MeasuredSubject & Pick<RunConfiguration, "promotion">;

/** The errors of this rule as measured here before; null: never. */
export async function knownGate(
  host: Host,
  frozen: FrozenEnvironment,
  subject: GateSubject,
  note: (line: string) => void,
): Promise<Gate | null> {
  const key = await keyOf(host, frozen, subject);
  return key === null ? null : readKept(host.cache, key, gate, note);
}

export async function rememberGate(
  host: Host,
  frozen: FrozenEnvironment,
  subject: GateSubject,
  { measured, note }: { readonly measured: Gate; readonly note: (line: string) => void },
): Promise<void> {
  const key = await keyOf(host, frozen, subject);
  if (key === null) note("what was measured is not kept for other runs: the runtime of this environment is not there any more");
  else await keep(host.cache, key, measured, note);
}

function keyOf({ cache }: Host, frozen: FrozenEnvironment, subject: GateSubject): Promise<MeasurementKey | null> {
  return measurementKey(cache, frozen, subject, { kind: "gate", promotion: subject.promotion });
}
