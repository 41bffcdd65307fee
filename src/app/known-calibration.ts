import { z } from "zod";
import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { forget, keep, type MeasurementKey, readKept } from "../adapters/environments/kept-measurements.js";
import { configurationOf, type RunState, trialOf } from "../core/harness/state.js";
import { isWholeCalibration, type ReusedCalibration, reusedCalibration } from "../core/protocol/calibration.js";
import { type Digest, digestOf } from "../core/protocol/canonical.js";
import { recordSet } from "../core/protocol/measurement.js";
import type { Run } from "../research/runner/run.js";
import type { Host } from "./environments.js";
import { hostFingerprint, type MeasuredSubject, measurementKey } from "./measurement-key.js";

/** A calibration that is taken over: its per-record results are blobs, which the new run stores as its own. */
export interface KnownCalibration extends ReusedCalibration {
  readonly records: ReadonlyMap<string, Uint8Array>;
}

const shape = z.strictObject({
  calibration: reusedCalibration,
  /** Digest → text of each per-record result. */
  records: z.record(z.string().length(64), z.string()),
});

/** Per-record results beyond this are measured anew by every run, rather than lie in the cache twice. */
const mostRecordBytes = 64 * 2 ** 20;

export interface Reuse {
  /** Digest of the candidate that it was measured on: a run that attributes a gain has another baseline than its environment. */
  readonly baseline: Digest;
  readonly maxAgeMs: number;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly note: (line: string) => void;
}

/** A calibration of this environment on this machine that is young enough and whole; null: there is none. */
export async function knownCalibration(
  host: Host,
  frozen: FrozenEnvironment,
  subject: MeasuredSubject,
  reuse: Reuse,
): Promise<KnownCalibration | null> {
  const key = await keyOf(host.cache, frozen, subject, reuse.baseline);
  const found = key === null ? null : await readKept(host.cache, key, shape, reuse.note);
  if (found === null) return null;
  const { calibration, records } = found;
  const age = reuse.now - calibration.from.measuredAt;
  if (age < 0 || age > reuse.maxAgeMs || !isWholeCalibration(calibration, subject)) return null;
  const texts = new Map(Object.entries(records).map(([digest, text]) => [digest, new TextEncoder().encode(text)]));
  const problem = recordsProblem(calibration, texts);
  if (problem === null) return { ...calibration, records: texts };
  reuse.note(`a calibration in the cache is left aside: ${problem}`);
  return null;
}

function recordsProblem({ results }: ReusedCalibration, texts: ReadonlyMap<string, Uint8Array>): string | null {
  for (const { records } of results) {
    if (records === null) continue;
    const text = texts.get(records.blob);
    if (text === undefined) return `the per-record results ${records.blob} are not in it`;
    if (digestOf(text) !== records.blob || text.byteLength !== records.bytes) return `its per-record results are not ${records.blob}`;
    if (!recordSet.safeParse(parsed(text)).success) return `${records.blob} holds no per-record results`;
  }
  return null;
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

/**
 * Keeps the calibration of a run as soon as it is measured, for the runs to come, and forgets one that was taken over and
 * does not hold any more: the baseline drifted from it, or fails. Resolves when nothing is being written.
 */
export function rememberCalibrations(host: Host, frozen: FrozenEnvironment, run: Run, note: (line: string) => void): () => Promise<void> {
  let writing = Promise.resolve();
  const open = Object.values(run.state.measurements).filter(({ reason }) => reason === "remeasurement");
  const looks = new Set(open.map(({ id }) => id));
  const stop = run.onEvent((event) => {
    const reused = run.state.calibrationReused !== null;
    if (event.type === "run.calibrated" && !reused)
      writing = writing
        .then(() => remember(host, frozen, run, event.at, note))
        .catch((error: unknown) =>
          note(`this calibration is not kept for other runs: ${error instanceof Error ? error.message : String(error)}`),
        );
    if (event.type === "measurement.requested" && event.data.reason === "remeasurement") looks.add(event.data.measurement);
    const isFailedLook = event.type === "attempt.ended" && event.data.result.kind === "ended" && looks.has(event.data.measurement);
    if (reused && (event.type === "drift.noticed" || isFailedLook)) writing = writing.then(() => forgetFor(host, frozen, run.state));
  });
  return () => {
    stop();
    return writing;
  };
}

function calibrationOf(state: RunState, measuredAt: number, blob: (digest: string) => Uint8Array): z.infer<typeof shape> {
  const { run, environmentDigest, host } = configurationOf(state);
  const baseline = state.trials["t0"];
  const repetitions = (baseline?.results ?? []).filter(({ reason }) => reason === "calibration");
  const cpuMs = (baseline?.cpuMs ?? 0) / Math.max(1, repetitions.length);
  // Repetitions of a parallel run end in any order.
  const results = [...repetitions]
    .sort((a, b) => a.pair - b.pair)
    .map(({ pair, seed, values, records, wallMs }) => ({ pair, seed, values, records, wallMs, cpuMs }));
  const digests = new Set(results.flatMap(({ records }) => (records === null ? [] : [records.blob])));
  return {
    calibration: { from: { run, environmentDigest, measuredAt, host: hostFingerprint(host) }, results },
    records: Object.fromEntries([...digests].map((digest) => [digest, new TextDecoder().decode(blob(digest))])),
  };
}

async function remember(host: Host, frozen: FrozenEnvironment, run: Run, measuredAt: number, note: (line: string) => void): Promise<void> {
  const key = await keyOf(host.cache, frozen, configurationOf(run.state), trialOf(run.state, "t0").candidate.blob);
  const bytes = (run.state.trials["t0"]?.results ?? []).reduce((total, { records }) => total + (records?.bytes ?? 0), 0);
  if (key === null || bytes > mostRecordBytes) return;
  await keep(
    host.cache,
    key,
    calibrationOf(run.state, measuredAt, (digest) => run.ledger.blob(digest)),
    note,
  );
}

async function forgetFor(host: Host, frozen: FrozenEnvironment, state: RunState): Promise<void> {
  const key = await keyOf(host.cache, frozen, configurationOf(state), trialOf(state, "t0").candidate.blob);
  if (key !== null) await forget(host.cache, key);
}

function keyOf(
  cache: Host["cache"],
  frozen: FrozenEnvironment,
  subject: MeasuredSubject,
  baseline: Digest,
): Promise<MeasurementKey | null> {
  return measurementKey(cache, frozen, subject, { kind: "calibration", baseline });
}
