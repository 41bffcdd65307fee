import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { digestFile } from "../adapters/environments/file-digest.js";
import { ArchiveRefusedError, readArchive } from "../adapters/packets/read-archive.js";
import { isPlainPath } from "../core/harness/admission.js";
import type { CandidateManifest } from "../core/protocol/candidate.js";
import { digestOf } from "../core/protocol/canonical.js";
import { type Packet, packet } from "../core/protocol/packet.js";
import { packetRoot } from "./pack-run.js";

/** A packet whose every byte is what its `packet.json` says. Whether what it claims is true is another question. */
export interface OpenedPacket {
  readonly packet: Packet;
  /** Digest of `packet.json`. */
  readonly digest: string;
  readonly folder: string;
  /** Text that the environment's digest is of. */
  readonly inventoryText: string;
  /** Contents of the candidates' files, by digest. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

const manifestBytes = 256 * 2 ** 20;

/** Unpacks a packet below a folder and checks it. @throws ArchiveRefusedError; the caller removes the folder */
export async function openPacket(file: string, into: string): Promise<OpenedPacket> {
  const paths = await readArchive(file, into);
  const folder = join(into, packetRoot);
  if (!paths.has(`${packetRoot}/packet.json`)) throw refused(file, `a file ${packetRoot}/packet.json`, "none");
  if ((await digestFile(join(folder, "packet.json"))).bytes > manifestBytes)
    throw refused(file, "a packet.json of at most 256 MiB", "more");
  const text = await readFile(join(folder, "packet.json"), "utf8");
  const claimed = readManifest(file, text);
  await checkFiles(file, folder, claimed, paths);
  const contents = new Map<string, Uint8Array>();
  for (const name of ["candidate", "baseline", "comparator"] as const) {
    // Where the comparator is the baseline it has no files of its own.
    const place = name === "comparator" && claimed.comparator === "t0" ? "baseline" : name;
    await readCandidate(file, join(folder, place), claimed.candidates[name], contents);
  }
  const inventoryText = await readFile(join(folder, "environment/inventory.json"), "utf8").catch(() => null);
  if (inventoryText === null) throw refused(file, "environment/inventory.json", "none");
  return { packet: claimed, digest: digestOf(text), folder, inventoryText, contents };
}

function readManifest(file: string, text: string): Packet {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refused(file, "packet.json to be JSON", "other text");
  }
  const parsed = packet.safeParse(value);
  if (parsed.success) return parsed.data;
  throw refused(file, "a packet.json as this version of trialist writes it", z.prettifyError(parsed.error).slice(0, 500));
}

/** Exactly the files that `packet.json` names, each with its digest. */
async function checkFiles(file: string, folder: string, { files }: Packet, paths: ReadonlySet<string>): Promise<void> {
  const named = new Set([`${packetRoot}/packet.json`]);
  for (const { path, bytes, digest } of files) {
    const shown = JSON.stringify(path.slice(0, 200));
    if (!isPlainPath(path) || named.has(`${packetRoot}/${path}`)) throw refused(file, "plain paths in packet.json, each once", shown);
    named.add(`${packetRoot}/${path}`);
    if (!paths.has(`${packetRoot}/${path}`)) throw refused(file, `the file ${shown}, which packet.json names`, "none");
    const found = await digestFile(join(folder, path));
    if (found.digest !== digest || found.bytes !== bytes) throw refused(file, `${shown} with the digest of packet.json`, found.digest);
  }
  const stray = [...paths].find((path) => !named.has(path));
  if (stray !== undefined) throw refused(file, "files that packet.json names", JSON.stringify(stray.slice(0, 200)));
}

async function readCandidate(file: string, folder: string, { files }: CandidateManifest, contents: Map<string, Uint8Array>): Promise<void> {
  for (const { path, digest } of files) {
    const shown = JSON.stringify(path.slice(0, 200));
    if (!isPlainPath(path)) throw refused(file, "candidates with plain paths", shown);
    const bytes = await readFile(join(folder, path)).catch(() => null);
    if (bytes === null || digestOf(bytes) !== digest) throw refused(file, `a candidate's file ${shown} with its digest`, "another or none");
    contents.set(digest, bytes);
  }
}

function refused(where: string, expected: string, found: string): ArchiveRefusedError {
  return new ArchiveRefusedError({ expected, found, where, todo: "Nothing of it was run. Ask for the packet again." });
}
