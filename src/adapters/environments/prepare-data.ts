import { randomBytes } from "node:crypto";
import { chmod, chown, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Executor, StageExecution } from "../../core/ports/executor.js";
import { canonicalJson, digestOf, digestOfValue } from "../../core/protocol/canonical.js";
import { TrialistError } from "../../core/protocol/errors.js";
import { giveToSandbox } from "../sandbox/identity.js";
import type { Cache } from "./cache.js";
import { listFolder } from "./folder-files.js";
import type { FrozenEnvironment } from "./freeze.js";
import { pythonRuntime, type Progress, type Runtime, systemRuntime } from "./runtime.js";

/** The data could not be prepared, or is not what was prepared. */
export class DataPreparationError extends TrialistError {
  readonly kind = "infrastructure";
}

/** The three folders; held-out lies apart, so that it can be moved away without any effect on a run. */
export interface DataFolders {
  readonly public: string | null;
  readonly inloop: string | null;
  readonly heldout: string | null;
  /** Canary files that nothing but its own stage can read: path → digest of the content. */
  readonly canaries: Readonly<Record<string, string>>;
}

export const canaryName = ".trialist-canary";
const parts = ["public", "inloop", "heldout"] as const;

/** Prepares an environment's data once, and checks it against its recorded checksums when it is used again. */
export async function prepareData(frozen: FrozenEnvironment, cache: Cache, executor: Executor, sandbox: "bubblewrap" | "none", progress: Progress): Promise<DataFolders> {
  const { data } = frozen.environment;
  if (data === null) return { public: null, inloop: null, heldout: null, canaries: {} };
  if (data.prepare === null) {
    const place = (path: string | null): string | null => (path === null ? null : join(frozen.packFolder, path));
    return { public: place(data.public), inloop: place(data.inloop), heldout: place(data.heldout), canaries: {} };
  }
  const key = await dataKey(frozen);
  const folder = cache.folder("data", key);
  if ((await readFile(join(folder, "checksums.json"), "utf8").catch(() => null)) === null) {
    await prepare(frozen, folder, cache, executor, sandbox, progress);
  }
  return verified(folder);
}

async function dataKey(frozen: FrozenEnvironment): Promise<string> {
  const { data } = frozen.environment;
  const file = async (path: string | null | undefined): Promise<string | null> => (path == null ? null : digestOf(await readFile(join(frozen.packFolder, path))));
  return digestOfValue({ data, prepare: await file(data?.prepare), runtime: await file(data?.prepareRuntime) });
}

async function prepare(frozen: FrozenEnvironment, folder: string, cache: Cache, executor: Executor, sandbox: "bubblewrap" | "none", progress: Progress): Promise<void> {
  const { data } = frozen.environment;
  const runtime = data?.prepareRuntime == null ? systemRuntime : await pythonRuntime(join(frozen.packFolder, data.prepareRuntime), pythonOf(frozen), cache, progress);
  progress(`preparing the data of ${frozen.environment.name} (once; kept in the cache)`);
  const temporary = `${folder}.${process.pid}.partial`;
  await rm(temporary, { recursive: true, force: true });
  await mkdir(join(temporary, "out"), { recursive: true, mode: 0o755 });
  await giveToSandbox(join(temporary, "out"));
  const id = `prepare-${process.pid}-${randomBytes(4).toString("hex")}/prepare-1`;
  await executor.start(preparation(id, data?.prepare ?? "", frozen.packFolder, join(temporary, "out"), runtime, sandbox));
  const found = await executor.wait(id);
  const output = await executor.output(id);
  const said = Buffer.concat([output.stdout.head, output.stderr.head, output.stderr.tail]).toString("utf8").slice(-2000);
  await executor.forget(id.slice(0, id.indexOf("/") + 1));
  if (found.state === "gone" || found.outcome.exitCode !== 0) {
    throw new DataPreparationError({ expected: `${data?.prepare} to exit with code 0`, found: found.state === "gone" ? found.reason : `exit code ${found.outcome.exitCode}, limit ${found.outcome.limit ?? "none"}: ${said}`, where: frozen.environment.name });
  }
  await seal(temporary);
  await rename(temporary, folder).catch(async (error: NodeJS.ErrnoException) => {
    await rm(temporary, { recursive: true, force: true });
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}

function pythonOf(frozen: FrozenEnvironment): string {
  const { runtime } = frozen.environment;
  return runtime?.kind === "python" ? runtime.requires : ">=3.9";
}

function preparation(id: string, script: string, pack: string, out: string, runtime: Runtime, sandbox: "bubblewrap" | "none"): StageExecution {
  const [packInside, outInside] = sandbox === "none" ? [pack, out] : ["/trialist/pack", "/trialist/out"];
  const interpreter = script.endsWith(".py") ? "python3 " : "./";
  return {
    id,
    command: `${interpreter}${script} ${outInside}`,
    workingDirectory: packInside,
    environment: { ...runtime.environment, PATH: [...runtime.path, "/usr/local/bin", "/usr/bin", "/bin"].join(":"), PYTHONDONTWRITEBYTECODE: "1", TRIALIST_SEED: "0" },
    mounts: [{ source: pack, target: packInside, mode: "read-only" }, { source: out, target: outInside, mode: "read-write" }, ...runtime.mounts],
    limits: { wallMs: 1_800_000, cpuMs: 3_600_000, memoryBytes: 8 * 2 ** 30, cpus: 1, processes: 512, diskBytes: 20 * 2 ** 30, outputBytes: 64 * 2 ** 20 },
    graceMs: 2000,
    outputFolder: null,
    outputs: [],
    collectInto: null,
    collectMaxBytes: 0,
    writableFolders: [out],
    sandbox,
    keepHeadBytes: 16_384,
    keepTailBytes: 65_536,
  };
}

/** Splits what was prepared into its folders, plants the canaries, and records the checksums. */
async function seal(folder: string): Promise<void> {
  const checksums: Record<string, Record<string, string>> = {};
  const canaries: Record<string, string> = {};
  const made = new Set(await readdir(join(folder, "out")));
  for (const part of parts) {
    if (!made.has(part)) continue;
    await rename(join(folder, "out", part), join(folder, part));
    if (part !== "public") {
      const canary = randomBytes(32).toString("hex");
      await writeFile(join(folder, part, canaryName), canary);
      canaries[part] = digestOf(canary);
    }
    checksums[part] = await checksumsOf(join(folder, part));
    await makeReadOnly(join(folder, part));
  }
  await rm(join(folder, "out"), { recursive: true, force: true });
  const file = await open(join(folder, "checksums.json"), "w");
  await file.writeFile(canonicalJson({ checksums, canaries }));
  await file.sync();
  await file.close();
  await chmod(folder, 0o755);
}

async function checksumsOf(folder: string): Promise<Record<string, string>> {
  const sums: Record<string, string> = {};
  for (const entry of await listFolder(folder, new Set())) {
    if (entry.kind !== "file") throw new DataPreparationError({ expected: "regular files alone in prepared data", found: `${entry.path}, which is none`, where: folder });
    if (entry.path !== canaryName) sums[entry.path] = digestOf(await readFile(join(folder, entry.path)));
  }
  return sums;
}

async function makeReadOnly(folder: string): Promise<void> {
  const uid = process.getuid?.() ?? 0;
  for (const entry of await listFolder(folder, new Set())) {
    if (uid === 0) await chown(join(folder, entry.path), 0, 0);
    await chmod(join(folder, entry.path), 0o444);
  }
  if (uid === 0) await chown(folder, 0, 0);
  await chmod(folder, 0o755);
}

async function verified(folder: string): Promise<DataFolders> {
  const { checksums, canaries } = JSON.parse(await readFile(join(folder, "checksums.json"), "utf8")) as { checksums: Record<string, Record<string, string>>; canaries: Record<string, string> };
  const place = (part: string): string | null => (checksums[part] === undefined ? null : join(folder, part));
  for (const part of ["public", "inloop"]) {
    const path = place(part);
    if (path === null) continue;
    if ((await stat(path).catch(() => null)) === null || canonicalJson(await checksumsOf(path)) !== canonicalJson(checksums[part])) {
      throw new DataPreparationError({ expected: "prepared data that matches its recorded checksums", found: "other files", where: path, todo: `Remove ${folder}; it is prepared again by the next run.` });
    }
  }
  return { public: place("public"), inloop: place("inloop"), heldout: place("heldout"), canaries };
}
