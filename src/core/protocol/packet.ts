import { z } from "zod";
import { candidateManifest } from "./candidate.js";
import { promotion } from "./environment.js";
import { runName, trialId } from "./ids.js";
import { metricValues } from "./measurement.js";
import { guarantees } from "./outcome.js";
import { trialStatus } from "./status.js";
import { noise, verdict } from "./verdict.js";

/** `packet.json`: what a packet holds and claims. Everything in it but this file is named with its digest. */
export const packetSchemaName = "trialist/packet@1";

const digest = z.string().regex(/^[0-9a-f]{64}$/);

/** A file of the packet, by its path from the packet's own folder. */
export const packetFile = z.strictObject({
  path: z.string().min(1).max(1100),
  bytes: z.number().int().nonnegative(),
  digest,
});
export type PacketFile = z.infer<typeof packetFile>;

/** One in-loop measurement as the run recorded it. */
export const packetMeasurement = z.strictObject({
  subject: z.enum(["candidate", "comparator", "baseline"]),
  reason: z.enum(["first", "calibration", "confirmation"]),
  pair: z.number().int().nonnegative(),
  seed: z.number().int().nonnegative(),
  values: metricValues,
  /** Digest of the per-record results; they themselves may tell labels, and stay where they are. */
  records: digest.nullable(),
});
export type PacketMeasurement = z.infer<typeof packetMeasurement>;

/** A folder of data: what it holds, whether or not the packet has it. */
export const packetData = z.strictObject({
  /** Over path, size and digest of every file. */
  digest,
  files: z.number().int().nonnegative(),
  bytes: z.number().int().nonnegative(),
  /** Whether the packet has it. */
  included: z.boolean(),
});
export type PacketData = z.infer<typeof packetData>;

export const packet = z.strictObject({
  schema: z.literal(packetSchemaName),
  run: runName,
  trial: z.strictObject({
    id: trialId,
    status: trialStatus,
    hypothesis: z.string(),
    selfReported: z.boolean(),
    retracted: z.boolean(),
    /** Retracted trials that it was built on or compared with. */
    restsOnRetracted: z.array(trialId),
  }),
  environment: z.strictObject({ name: z.string().max(64), digest }),
  promotion,
  sandbox: z.enum(["bubblewrap", "none"]),
  guarantees: z.array(guarantees),
  noise: noise.nullable(),
  /** The leader that the trial was judged against; `t0` is the baseline. */
  comparator: trialId,
  verdict: verdict.nullable(),
  /** Values that count: the mean of confirmations where there are any. */
  estimate: metricValues.nullable(),
  gainOverBaseline: z.number().nullable(),
  seeds: z.strictObject({
    environment: z.number().int().nonnegative(),
    /** Of the confirmation that the verdict stands on, in the order of its pairs. */
    confirmations: z.array(z.number().int().nonnegative()).max(1000),
  }),
  measurements: z.array(packetMeasurement).max(10_000),
  /** How often anybody looked at the held-out data of the run; what they saw is in no packet. */
  heldoutLooks: z.number().int().nonnegative(),
  spend: z.strictObject({
    trials: z.number(),
    costUsd: z.number(),
    tokens: z.number(),
    computeMs: z.number(),
    activeMs: z.number(),
    /** Searched trials that ended: the more were tried, the more the best owes to luck. */
    searched: z.number().int().nonnegative(),
  }),
  host: z.strictObject({
    platform: z.string().max(100),
    cpus: z.number().int().positive(),
    cpuModel: z.string().max(300),
    memoryBytes: z.number(),
    versions: z.record(z.string(), z.string()),
  }),
  ledger: z.strictObject({ chain: digest, events: z.number().int().nonnegative() }),
  candidates: z.strictObject({ candidate: candidateManifest, comparator: candidateManifest, baseline: candidateManifest }),
  data: z.strictObject({ public: packetData.nullable(), inloop: packetData.nullable() }),
  /** What is not in the packet, and why. */
  leftOut: z.array(z.strictObject({ what: z.string(), why: z.string() })),
  files: z.array(packetFile).max(400_000),
});
export type Packet = z.infer<typeof packet>;
