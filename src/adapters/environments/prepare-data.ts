import { randomBytes } from "node:crypto";
import { chmod, copyFile, cp, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { asDiskFull } from "../../core/ports/disk-full.js";
import type { Executor, StageExecution } from "../../core/ports/executor.js";
import { canonicalJson, type Digest, digestOf, digestOfValue } from "../../core/protocol/canonical.js";
import type { Environment } from "../../core/protocol/environment.js";
import { TrialistError } from "../../core/protocol/errors.js";
import { networkHintOf } from "../../core/protocol/network-hint.js";
import { giveToSandbox } from "../sandbox/identity.js";
import { withLock } from "./build-lock.js";
import { type Cache, makeOpenFolder } from "./cache.js";
import { canaryName, plantCanary } from "./canary.js";
import { DigestMemory } from "./digest-memory.js";
import { type FileRecord, firstDifference, openRegular, recordFolder } from "./file-digest.js";
import { listFolder } from "./folder-files.js";
import { canariesFile, type FrozenEnvironment } from "./freeze.js";
import { preparationFolder } from "./pack-layout.js";
import type { Packages } from "./python-installer.js";
import { type Progress, pythonRuntime, type Runtime, systemRuntime } from "./runtime.js";

/** The data could not be prepared, or is not what was prepared. */
export class DataPreparationError extends TrialistError {
  readonly kind = "infrastructure";
}

/** The three folders; held-out lies apart, so that it can be moved away without any effect on a run. */
export interface DataFolders {
  readonly public: string | null;
  readonly inloop: string | null;
  readonly heldout: string | null;
  /** Canary files that nothing but its own stage can read: folder's name → digest of the content. */
  readonly canaries: Readonly<Record<string, Digest>>;
  /** Checks the held-out folder before a look. Nothing else touches it. @throws DataPreparationError */
  readonly checkHeldout: () => Promise<void>;
}

const parts = ["public", "inloop", "heldout"] as const;
type Part = (typeof parts)[number];
type PreparedData = Environment["data"] & { readonly prepare: string };

/** Runs of a preparation are bounded like everything else. */
const limits = {
  wallMs: 1_800_000,
  cpuMs: 3_600_000,
  memoryBytes: 8 * 2 ** 30,
  cpus: 1,
  processes: 512,
  diskBytes: 20 * 2 ** 30,
  outputBytes: 64 * 2 ** 20,
};

/** What lies beside the prepared folders. The held-out folder's own records are in `heldout.json`. */
interface Checksums {
  readonly files: Readonly<Partial<Record<Part, readonly FileRecord[]>>>;
  readonly canaries: Readonly<Record<string, Digest>>;
  readonly heldout: boolean;
}

/** Prepares an environment's data once, and checks it against its recorded checksums when it is used again. */
export async function prepareData(
  frozen: FrozenEnvironment,
  cache: Cache,
  executor: Executor,
  sandbox: "bubblewrap" | "none",
  progress: Progress,
): Promise<DataFolders> {
  const { data } = frozen.environment;
  if (data === null) return { public: null, inloop: null, heldout: null, canaries: {}, checkHeldout: async () => {} };
  if (data.prepare === null) return broughtData(frozen);
  const prepared = { ...data, prepare: data.prepare };
  const folder = cache.folder("data", await dataKey(frozen, prepared));
  if ((await readChecksums(folder)) === null) {
    const onWait = (): void => progress("waiting for another process that prepares the same data");
    await withLock(`${folder}.lock`, onWait, async () => {
      if ((await readChecksums(folder)) === null) await prepare(frozen, prepared, folder, cache, executor, sandbox, progress);
    });
  }
  cache.markUsed(folder);
  const memory = DigestMemory.open(cache, folder);
  return preparedData(folder, memory).finally(() => memory.close());
}

/** Data that the pack brings ready-made was copied and checked when it was frozen. */
async function broughtData(frozen: FrozenEnvironment): Promise<DataFolders> {
  const root = frozen.dataFolder;
  const place = (part: Part): string | null => (root === null || frozen.environment.data?.[part] == null ? null : join(root, part));
  const canaries = root === null ? {} : (JSON.parse(await readFile(join(dirname(root), canariesFile), "utf8")) as Record<string, Digest>);
  return {
    public: place("public"),
    inloop: place("inloop"),
    heldout: place("heldout"),
    canaries,
    checkHeldout: () => checkHeldout(root === null ? "" : dirname(root), root ?? ""),
  };
}

async function preparedData(folder: string, memory: DigestMemory): Promise<DataFolders> {
  const checksums = await readChecksums(folder);
  if (checksums === null) throw new DataPreparationError({ expected: "prepared data", found: "nothing", where: folder });
  for (const part of ["public", "inloop"] as const) {
    const recorded = checksums.files[part];
    const difference = recorded === undefined ? null : await firstDifference(join(folder, part), recorded, [], memory);
    if (difference !== null) throw altered(join(folder, part), difference, folder);
  }
  const place = (part: Part): string | null => (checksums.files[part] === undefined ? null : join(folder, part));
  return {
    public: place("public"),
    inloop: place("inloop"),
    heldout: checksums.heldout ? join(folder, "heldout") : null,
    canaries: checksums.canaries,
    checkHeldout: () => checkHeldout(folder, folder),
  };
}

async function checkHeldout(records: string, folder: string): Promise<void> {
  const text = await readFile(join(records, "heldout.json"), "utf8").catch(() => null);
  if (text === null)
    throw new DataPreparationError({
      expected: "records of held-out data",
      found: "nothing",
      where: records,
      todo: "This environment has no held-out data.",
    });
  const difference = await firstDifference(join(folder, "heldout"), JSON.parse(text) as FileRecord[], [canaryName]);
  if (difference !== null) throw altered(join(folder, "heldout"), difference, records);
}

function altered(where: string, found: string, folder: string): DataPreparationError {
  return new DataPreparationError({
    expected: "data that matches its recorded checksums",
    found,
    where,
    todo: `Bring the files back, or remove ${folder} so that it is made again.`,
  });
}

async function readChecksums(folder: string): Promise<Checksums | null> {
  const text = await readFile(join(folder, "checksums.json"), "utf8").catch(() => null);
  return text === null ? null : (JSON.parse(text) as Checksums);
}

/** Everything that can change what a preparation makes. */
async function dataKey(frozen: FrozenEnvironment, data: PreparedData): Promise<Digest> {
  const { released, ...section } = data;
  const lock = data.prepareRuntime === null ? null : digestOf(await readFile(join(frozen.packFolder, data.prepareRuntime)));
  const inputs = preparationFolder(data.prepare);
  const script =
    inputs === null
      ? digestOf(await readFile(join(frozen.packFolder, data.prepare)))
      : (await recordFolder(join(frozen.packFolder, inputs))).files;
  return digestOfValue({
    form: 1,
    section,
    script,
    lock,
    requires: pythonOf(frozen),
    seed: frozen.environment.seed,
    mounts: frozen.environment.mounts,
  });
}

/** What a runtime of an environment may be made of. */
export function packagesOf({ from }: FrozenEnvironment): Packages {
  return from === "elsewhere" ? "wheels" : "any";
}

function pythonOf(frozen: FrozenEnvironment): string {
  const { runtime } = frozen.environment;
  return runtime?.kind === "python" ? runtime.requires : ">=3.9";
}

async function prepare(
  frozen: FrozenEnvironment,
  data: PreparedData,
  folder: string,
  cache: Cache,
  executor: Executor,
  sandbox: "bubblewrap" | "none",
  progress: Progress,
): Promise<void> {
  const runtime =
    data.prepareRuntime === null
      ? systemRuntime
      : await pythonRuntime(join(frozen.packFolder, data.prepareRuntime), pythonOf(frozen), cache, progress, packagesOf(frozen));
  progress(`preparing the data of ${frozen.environment.name} (once; kept in the cache)`);
  const temporary = `${folder}.${randomBytes(6).toString("hex")}.partial`;
  try {
    for (const name of ["in", "out", "made"]) await makeOpenFolder(join(temporary, name));
    await copyInputs(frozen.packFolder, data.prepare, join(temporary, "in"));
    await giveToSandbox(join(temporary, "out"));
    await runPreparation(frozen, data.prepare, temporary, runtime, executor, sandbox);
    await seal(data, temporary);
    await rename(join(temporary, "made"), folder);
  } catch (error) {
    throw asDiskFull(error, folder) ?? error;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** A preparation sees its own folder, or its script alone: what else lies in the pack is not in its key. */
async function copyInputs(pack: string, script: string, target: string): Promise<void> {
  const inputs = preparationFolder(script);
  if (inputs === null) return copyFile(join(pack, script), join(target, basename(script)));
  await makeOpenFolder(dirname(join(target, inputs)));
  await cp(join(pack, inputs), join(target, inputs), { recursive: true });
}

async function runPreparation(
  frozen: FrozenEnvironment,
  script: string,
  temporary: string,
  runtime: Runtime,
  executor: Executor,
  sandbox: "bubblewrap" | "none",
): Promise<void> {
  const id = `prepare-${process.pid}-${randomBytes(4).toString("hex")}/prepare-1`;
  const folders =
    sandbox === "none"
      ? { input: join(temporary, "in"), output: join(temporary, "out") }
      : { input: "/trialist/pack", output: "/trialist/out" };
  await executor.start({
    ...common(frozen, runtime, sandbox),
    id,
    command: `${interpreterOf(script)}${quoted(script)} ${quoted(folders.output)}`,
    workingDirectory: folders.input,
    mounts: [
      { source: join(temporary, "in"), target: folders.input, mode: "read-only" },
      { source: join(temporary, "out"), target: folders.output, mode: "read-write" },
      ...externalMounts(frozen, sandbox),
      ...runtime.mounts,
    ],
    writableFolders: [join(temporary, "out")],
  });
  const found = await executor.wait(id);
  const { stdout, stderr } = await executor.output(id);
  await executor.forget(id.slice(0, id.indexOf("/") + 1));
  if (found.state === "ended" && found.outcome.exitCode === 0 && found.outcome.limit === null) return;
  const said = Buffer.concat([stdout.head, stdout.tail, stderr.head, stderr.tail]).toString("utf8").slice(-2000);
  const hint = sandbox === "none" ? null : networkHintOf(said);
  throw new DataPreparationError({
    expected: `${script} to exit with code 0`,
    found:
      found.state === "gone"
        ? found.reason
        : `${found.outcome.limit === null ? `exit code ${found.outcome.exitCode ?? found.outcome.signal}` : `its ${found.outcome.limit} limit`}: ${said}`,
    where: frozen.environment.name,
    todo: `Mend the preparation, or what it needs; nothing was kept.${hint === null ? "" : ` Note that ${hint}.`}`,
  });
}

function common(
  frozen: FrozenEnvironment,
  runtime: Runtime,
  sandbox: "bubblewrap" | "none",
): Omit<StageExecution, "id" | "command" | "workingDirectory" | "mounts" | "writableFolders"> {
  const path = [...runtime.path, "/usr/local/bin", "/usr/bin", "/bin"].join(":");
  return {
    environment: {
      ...runtime.environment,
      PATH: path,
      PYTHONDONTWRITEBYTECODE: "1",
      PYTHONHASHSEED: "0",
      TRIALIST_SEED: String(frozen.environment.seed),
    },
    limits,
    graceMs: 2000,
    outputFolder: null,
    outputs: [],
    collectInto: null,
    collectMaxBytes: 0,
    sandbox,
    keepHeadBytes: 16_384,
    keepTailBytes: 65_536,
  };
}

function externalMounts(frozen: FrozenEnvironment, sandbox: "bubblewrap" | "none"): StageExecution["mounts"] {
  return frozen.environment.mounts.map(({ source, target }) => ({
    source,
    target: sandbox === "none" ? source : target,
    mode: "read-only" as const,
  }));
}

function interpreterOf(script: string): string {
  if (script.endsWith(".py")) return "python3 ";
  return script.endsWith(".sh") ? "sh " : "./";
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** Copies what was prepared into folders of our own, plants the canaries, and records the checksums. */
async function seal(data: PreparedData, temporary: string): Promise<void> {
  const files: Partial<Record<Part, readonly FileRecord[]>> = {};
  const canaries: Record<string, Digest> = {};
  for (const part of parts) {
    const name = data[part];
    const target = join(temporary, "made", part);
    if (name === null || !(await copyRegular(join(temporary, "out", name), target))) continue;
    if (part !== "public") canaries[part] = await plantCanary(target);
    const { files: records } = await recordFolder(target);
    if (part === "heldout") await writeDurably(join(temporary, "made", "heldout.json"), canonicalJson(records));
    else files[part] = records;
  }
  if (Object.keys(files).length === 0 && canaries["heldout"] === undefined) {
    throw new DataPreparationError({
      expected: `${data.prepare} to write OUT/public, OUT/inloop or OUT/heldout`,
      found: "none of them",
      todo: "Its first argument is the folder OUT.",
    });
  }
  const checksums: Checksums = { files, canaries, heldout: canaries["heldout"] !== undefined };
  await writeDurably(join(temporary, "made", "checksums.json"), canonicalJson(checksums));
}

/** Copies regular files and refuses everything else; false when the folder was not made. */
async function copyRegular(source: string, target: string): Promise<boolean> {
  const entries = await listFolder(source, new Set()).catch(() => null);
  if (entries === null) return false;
  await makeOpenFolder(target);
  for (const entry of entries) {
    if (entry.kind !== "file")
      throw new DataPreparationError({
        expected: "regular files alone in prepared data",
        found: `${entry.path}, which is none`,
        where: source,
      });
    await makeOpenFolder(dirname(join(target, entry.path)));
    const from = await openRegular(join(source, entry.path));
    await writeFile(join(target, entry.path), from.createReadStream({ highWaterMark: 2 ** 20 }));
    await chmod(join(target, entry.path), 0o444);
  }
  return true;
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "w");
  await file.writeFile(text);
  await file.sync();
  await file.close();
}
