import { randomBytes } from "node:crypto";
import { chmod, copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { digestFile } from "../adapters/environments/file-digest.js";
import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { frozenInventory } from "../adapters/environments/frozen-files.js";
import type { Inventory } from "../adapters/environments/inventory.js";
import { exportLedger } from "../adapters/ledger/export-ledger.js";
import { writeArchive } from "../adapters/packets/write-archive.js";
import { isOver } from "../core/harness/due.js";
import { trialNamed } from "../core/harness/state.js";
import type { CandidateManifest } from "../core/protocol/candidate.js";
import { digestOf } from "../core/protocol/canonical.js";
import { RefusedError } from "../core/protocol/errors.js";
import { type Packet, type PacketFile, packet, packetSchemaName } from "../core/protocol/packet.js";
import { jsonDocument } from "../research/report/hostile-text.js";
import { packetReadme } from "../research/report/packet-readme.js";
import { frozenByDigest, type Host } from "./environments.js";
import type { InspectedRun } from "./inspect.js";
import { claimsOf } from "./packet-claims.js";
import { gatherData, type PackedData } from "./packet-data.js";
import type { Project } from "./project.js";
import { secretsOf } from "./secrets.js";
import { wayToEnd } from "./way-to-end.js";

export interface PackOptions {
  readonly trial: string | null;
  /** Null: one of the project's packets, named after run and trial. */
  readonly file: string | null;
  /** Labels of the in-loop split, and data that a preparation can make again. */
  readonly withData: boolean;
  readonly withLedger: boolean;
}

export interface Packed {
  readonly trial: string;
  readonly file: string;
  readonly files: number;
  readonly bytes: number;
  /** Of `packet.json`, which names every other file's. */
  readonly digest: string;
  readonly leftOut: Packet["leftOut"];
  readonly holdsLabels: boolean;
}

/** Folder of the packet inside the archive. */
export const packetRoot = "packet";

/**
 * Writes one archive with all that somebody needs to measure a trial again. Held-out data and secrets are never in it,
 * labels only when asked for.
 * @throws RefusedError while the run goes on, since seeds of confirmations are in it
 */
export async function packRun(
  project: Project,
  host: Host,
  inspected: InspectedRun,
  options: PackOptions,
  progress: (line: string) => void,
): Promise<Packed> {
  const { state, name } = inspected;
  if (!isOver(state.phase))
    throw new RefusedError({
      expected: "a run that is over: a packet holds the seeds of confirmations",
      found: `${name}, which is ${state.phase}`,
      todo: wayToEnd(inspected),
    });
  const trial = trialNamed(state, options.trial ?? state.leader?.trial ?? "");
  if (trial === null)
    throw new RefusedError({
      expected: "a trial of this run",
      found: options.trial ?? "a run without a best",
      todo: "Name one with --trial.",
    });
  const secrets = secretsOf(host.variables);
  const claims = claimsOf(inspected, trial, secrets.redact);
  const frozen = await frozenByDigest(host, claims.environment.digest);
  const staging = host.cache.folder("scratch", `${randomBytes(6).toString("hex")}-pack-${process.pid}`);
  const stage = new Staging(join(staging, packetRoot), secrets.redact);
  try {
    const { candidate, comparator, baseline } = claims.candidates;
    await stage.candidate("candidate", candidate, inspected);
    await stage.candidate("baseline", baseline, inspected);
    if (claims.comparator !== "t0") await stage.candidate("comparator", comparator, inspected);
    const { text, inventory } = await frozenInventory(host.cache, frozen);
    await stage.environment(frozen, text, inventory);
    const data = await gatherData(host, frozen, inventory, { withData: options.withData, sandbox: claims.sandbox, progress });
    for (const file of data.files) await stage.copy(file.source, file.path, false);
    if (options.withLedger) await stage.ledger(project, inspected);
    const whole = { schema: packetSchemaName, ...claims, data: data.described, leftOut: leftOut(frozen, data, options) } as const;
    await stage.text("README.md", packetReadme(whole));
    const digest = await stage.manifest(whole);
    const file = options.file ?? join(project.makePacketFolder(), `${name}-${trial.id}.tar.gz`);
    await writeArchive(staging, stage.paths(), file);
    const { files, bytes } = stage.totals();
    const holdsLabels = data.described.inloop?.included === true;
    return { trial: trial.id, file, files, bytes, digest, leftOut: whole.leftOut, holdsLabels };
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

function leftOut({ environment }: FrozenEnvironment, data: PackedData, options: PackOptions): Packet["leftOut"] {
  const missing = [...data.leftOut];
  if (environment.data?.heldout != null) missing.push({ what: "held-out data", why: "it never leaves the machine that holds it" });
  for (const { target } of environment.mounts)
    missing.push({
      what: `the mount ${target}`,
      why: "an external folder: whoever measures again needs it at the path that the contract names",
    });
  if (environment.runtime?.kind === "prefix")
    missing.push({ what: "the runtime", why: "an existing prefix, which nothing froze: whoever measures again needs it at the same path" });
  if (!options.withLedger) missing.push({ what: "the ledger", why: "all trials and all words of the researchers: --with-ledger adds it" });
  missing.push({
    what: "per-record results and outputs",
    why: "they may tell labels; their digests are here, and measuring again makes them",
  });
  return missing;
}

/** Larger files are data, in which nobody writes a key by hand. */
const searchedBytes = 32 * 2 ** 20;

/** The packet as it grows in a folder: every file copied, named with its digest, and free of the secrets that we know. */
class Staging {
  private readonly files: PacketFile[] = [];

  constructor(
    private readonly root: string,
    private readonly redact: (text: string) => string,
  ) {}

  async candidate(folder: string, manifest: CandidateManifest, { ledger }: InspectedRun): Promise<void> {
    for (const file of manifest.files) await this.bytes(`${folder}/${file.path}`, ledger.blob(file.digest), file.executable);
  }

  async environment(frozen: FrozenEnvironment, inventoryText: string, inventory: Inventory): Promise<void> {
    await this.bytes("environment/inventory.json", new TextEncoder().encode(inventoryText), false);
    for (const file of inventory.files) {
      const source = join(frozen.packFolder, file.path);
      if (file.bytes <= searchedBytes) this.refuseSecrets(`environment/pack/${file.path}`, await readFile(source));
      await this.copy(source, `environment/pack/${file.path}`, file.executable);
    }
  }

  async ledger(project: Project, inspected: InspectedRun): Promise<void> {
    const target = join(this.root, "ledger.jsonl");
    await exportLedger(inspected.folder, target, { blobFolder: project.blobFolder, run: inspected.name });
    await this.record("ledger.jsonl", false);
  }

  text(path: string, text: string): Promise<void> {
    return this.bytes(path, new TextEncoder().encode(text), false);
  }

  async copy(source: string, path: string, executable: boolean): Promise<void> {
    await mkdir(dirname(join(this.root, path)), { recursive: true });
    await copyFile(source, join(this.root, path));
    await this.record(path, executable);
  }

  /** Writes `packet.json`, and returns its digest. */
  async manifest(whole: Omit<Packet, "files">): Promise<string> {
    const files = [...this.files].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
    const text = jsonDocument(packet.parse({ ...whole, files }));
    await this.text("packet.json", text);
    return digestOf(text);
  }

  paths(): string[] {
    return this.files.map((file) => `${packetRoot}/${file.path}`);
  }

  totals(): { files: number; bytes: number } {
    return { files: this.files.length, bytes: this.files.reduce((sum, file) => sum + file.bytes, 0) };
  }

  private async bytes(path: string, content: Uint8Array, executable: boolean): Promise<void> {
    this.refuseSecrets(path, content);
    await mkdir(dirname(join(this.root, path)), { recursive: true });
    await writeFile(join(this.root, path), content);
    await this.record(path, executable);
  }

  /** A packet goes to others: a key that somebody left in a file goes to nobody. */
  private refuseSecrets(path: string, content: Uint8Array): void {
    const text = Buffer.from(content).toString("utf8");
    if (this.redact(text) === text) return;
    throw new RefusedError({
      expected: "files without the secrets of this process's environment",
      found: `one of them in ${path}`,
      todo: "Take it out of the environment's files and run again; nothing was written.",
    });
  }

  private async record(path: string, executable: boolean): Promise<void> {
    await chmod(join(this.root, path), executable ? 0o755 : 0o644);
    this.files.push({ path, ...(await digestFile(join(this.root, path))) });
  }
}
