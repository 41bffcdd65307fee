import { randomBytes, randomInt } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { giveToSandbox } from "../adapters/sandbox/identity.js";
import { assertUsable, probeSandbox } from "../adapters/sandbox/probe.js";
import { drawsOf } from "../core/harness/draw.js";
import { digestOf } from "../core/protocol/canonical.js";
import type { Packet } from "../core/protocol/packet.js";
import type { AloneHost } from "../research/engine/measure-alone.js";
import type { Host } from "./environments.js";
import { withExecutor } from "./executors.js";
import { gpusFor } from "./gpus.js";
import { type OpenedPacket, openPacket } from "./packet-open.js";
import { environmentOfPacket, type RescorePermissions } from "./rescore-environment.js";
import { PacketPairs, type Rescored } from "./rescore-pairs.js";
import { stoppableExecutor } from "./stoppable-executor.js";
import { ownVersion } from "./version.js";

export interface RescoreOptions extends RescorePermissions {
  readonly file: string;
  /** Pairs on fresh seeds; null: as many as the rule confirmed with, two at least. */
  readonly pairs: number | null;
  /** What fresh seeds are drawn from; null: drawn anew. */
  readonly seed: number | null;
}

export interface RescoreAnswer extends Rescored {
  readonly file: string;
  readonly packet: string;
  readonly run: string;
  readonly trial: string;
  readonly environment: Packet["environment"];
  readonly recorded: Pick<Packet, "verdict" | "gainOverBaseline" | "estimate" | "comparator">;
  /** What is not here as it was there: hardware, versions, data. */
  readonly differences: readonly string[];
}

/**
 * Measures a packet's candidate again beside what it was compared with: unpacked and checked, its environment frozen under
 * the same digest, every program of it in the sandbox, without a run and without a trace in this machine's own records. `signal` ends
 * it, with what runs.
 */
export async function rescorePacket(
  host: Host,
  options: RescoreOptions,
  progress: (line: string) => void,
  signal: AbortSignal,
): Promise<RescoreAnswer> {
  assertUsable(await probeSandbox());
  const key = `${randomBytes(6).toString("hex")}-rescore-${process.pid}`;
  return withExecutor(host, key, async (workplace) => {
    const { scratch } = workplace;
    const executor = stoppableExecutor(workplace.executor, signal);
    const attempts = join(scratch, "attempts");
    await mkdir(attempts, { mode: 0o755 });
    const opened = await openPacket(options.file, join(scratch, "unpacked"));
    progress(`packet ${opened.digest}: trial ${opened.packet.trial.id} of ${opened.packet.run}`);
    const { prepared, differences } = await environmentOfPacket(host, opened, executor, scratch, options, progress);
    const rescored = await pairsOf(host, opened, { prepared, executor, scratch: attempts }, progress).measure(freshSeeds(opened, options));
    return {
      ...identityOf(options.file, opened),
      ...rescored,
      differences: [...(await machineDifferences(opened.packet)), ...differences],
    };
  });
}

function pairsOf(
  host: Host,
  { packet, contents }: OpenedPacket,
  place: Pick<AloneHost, "prepared" | "executor" | "scratch">,
  progress: (line: string) => void,
): PacketPairs {
  const blobs = new Map<string, Uint8Array>();
  const alone: AloneHost = {
    ...place,
    sandbox: "bubblewrap",
    giveToSandbox,
    hostEnvironment: host.variables,
    gpus: gpusFor(place.prepared.environment, host, "bubblewrap"),
    blob: (digest) => contents.get(digest) ?? new Uint8Array(),
    putBlob: (bytes) => {
      blobs.set(digestOf(bytes), bytes);
      return { blob: digestOf(bytes), bytes: bytes.byteLength };
    },
  };
  return new PacketPairs(alone, packet, (digest) => blobs.get(digest) ?? new Uint8Array(), progress);
}

function freshSeeds({ packet }: OpenedPacket, { pairs, seed }: RescoreOptions): number[] {
  const count = pairs ?? Math.max(2, packet.seeds.confirmations.length);
  const draws = drawsOf(seed ?? randomInt(2 ** 31));
  const known = new Set([packet.seeds.environment, ...packet.seeds.confirmations]);
  const fresh: number[] = [];
  for (let index = 0; fresh.length < count; index++) {
    const drawn = draws.seed("rescore", index);
    if (!known.has(drawn)) fresh.push(drawn);
    known.add(drawn);
  }
  return fresh;
}

function identityOf(file: string, { packet, digest }: OpenedPacket): Omit<RescoreAnswer, keyof Rescored | "differences"> {
  const { run, trial, environment, verdict, gainOverBaseline, estimate, comparator } = packet;
  return { file, packet: digest, run, trial: trial.id, environment, recorded: { verdict, gainOverBaseline, estimate, comparator } };
}

async function machineDifferences({ host, sandbox }: Packet): Promise<string[]> {
  const here = {
    platform: process.platform as string,
    processor: cpus()[0]?.model ?? "unknown",
    CPUs: String(cpus().length),
    "memory in GiB": (totalmem() / 2 ** 30).toFixed(1),
    trialist: await ownVersion(),
    node: process.versions.node,
  };
  const there: Record<string, string> = {
    platform: host.platform,
    processor: host.cpuModel,
    CPUs: String(host.cpus),
    "memory in GiB": (host.memoryBytes / 2 ** 30).toFixed(1),
    ...host.versions,
  };
  const differing = Object.entries(here).filter(([name, value]) => there[name] !== value);
  return [
    ...differing.map(([name, value]) => `${name}: ${there[name] ?? "unknown"} there, ${value} here`),
    ...(sandbox === "none" ? ["sandbox: none there, bubblewrap here"] : []),
  ];
}
