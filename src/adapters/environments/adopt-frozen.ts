import { chmod, copyFile, link, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { type Digest, digestOf } from "../../core/protocol/canonical.js";
import { type Environment, environment } from "../../core/protocol/environment.js";
import { type Cache, makeOpenFolder } from "./cache.js";
import { canariesFile, type FrozenEnvironment, openFrozen } from "./freeze.js";
import { FrozenEnvironmentError } from "./frozen-copy.js";
import { globFault, pathFault } from "./globs.js";
import { type Inventory, inventoryFile } from "./inventory.js";
import { patternFault } from "./metric-pattern.js";
import { secretName } from "./secret-names.js";

const fileRecord = z.strictObject({ path: z.string(), bytes: z.number().int().nonnegative(), digest: z.string().length(64) });
const inventorySchema = z.strictObject({
  environment,
  files: z.array(fileRecord.extend({ executable: z.boolean() })),
  context: z.array(z.string()).nullable(),
  data: z.record(z.enum(["public", "inloop"]), z.array(fileRecord)).or(z.strictObject({})),
  mounts: z.array(z.string().length(64)),
});

/** Where the files of a frozen environment that came from elsewhere lie. */
export interface AdoptedSources {
  readonly pack: string;
  readonly public: string | null;
  readonly inloop: string | null;
}

/** Reads an inventory that somebody else wrote. @throws FrozenEnvironmentError when its digest differs, or it could reach out of its folder */
export function readForeignInventory(text: string, digest: Digest): Inventory {
  if (digestOf(text) !== digest) throw refused("an inventory with the digest that the packet names", "another one");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refused("an inventory in JSON", "other text");
  }
  const parsed = inventorySchema.safeParse(value);
  if (!parsed.success) throw refused("an inventory as this version of trialist writes it", z.prettifyError(parsed.error).slice(0, 500));
  const inventory = parsed.data as Inventory;
  const fault = faultsOf(inventory)[0];
  if (fault !== undefined) throw refused("a contract that stays within its own files", fault);
  return inventory;
}

/**
 * Puts a frozen environment that came from elsewhere into a cache, where it is checked file by file like any other. The
 * cache should be one of its own: what comes from elsewhere has no held-out data.
 * @throws FrozenEnvironmentError when a file is missing or differs
 */
export async function adoptFrozen(cache: Cache, digest: Digest, text: string, sources: AdoptedSources): Promise<FrozenEnvironment> {
  const inventory = readForeignInventory(text, digest);
  const folder = cache.folder("environments", digest);
  await makeOpenFolder(join(folder, "pack"));
  for (const file of inventory.files) await place(join(sources.pack, file.path), join(folder, "pack", file.path), file.executable);
  if (inventory.context !== null) await makeOpenFolder(join(folder, "context"));
  for (const path of inventory.context ?? []) {
    await makeOpenFolder(dirname(join(folder, "context", path)));
    await link(join(folder, "pack", path), join(folder, "context", path));
  }
  for (const part of ["public", "inloop"] as const) {
    const source = sources[part];
    if (inventory.data[part] === undefined || source === null) continue;
    await makeOpenFolder(join(folder, "data", part));
    for (const file of inventory.data[part]) await place(join(source, file.path), join(folder, "data", part, file.path), false);
  }
  await writeFile(join(folder, canariesFile), "{}");
  await writeFile(join(folder, inventoryFile), text);
  return { ...(await openFrozen(cache, digest)), from: "elsewhere" };
}

async function place(source: string, target: string, executable: boolean): Promise<void> {
  await makeOpenFolder(dirname(target));
  await copyFile(source, target).catch((cause: NodeJS.ErrnoException) => {
    throw refused("every file that the environment's inventory names", `none at ${source}`, cause);
  });
  await chmod(target, executable ? 0o555 : 0o444);
}

/** What the loader of an environment would have refused, and what no loader ever saw: this contract was never YAML here. */
function faultsOf({ environment: contract, files, context, data }: Inventory): string[] {
  const named = new Set(files.map((file) => file.path));
  const paths = [
    ...files.map((file) => file.path),
    ...Object.values(data).flatMap((part) => part.map((file) => file.path)),
    ...[contract.data?.public, contract.data?.inloop, contract.data?.heldout].filter((path) => path != null),
    ...contract.references.map((reference) => reference.path),
    ...(contract.baseline === "." ? [] : [contract.baseline]),
  ];
  const inPack = [...(context ?? []), ...packPathsOf(contract)];
  return [
    ...paths.flatMap((path) => faultOf("the path", path, pathFault(path))),
    ...inPack.flatMap((path) => faultOf("the path", path, named.has(path) ? null : "no file of the environment has it")),
    ...contract.surface.editable.flatMap((glob) => faultOf("the glob", glob, globFault(glob))),
    ...contract.stages.flatMap((stage) => stage.outputs.flatMap((glob) => faultOf("the output", glob, globFault(glob)))),
    ...contract.stages.flatMap((stage) =>
      stage.pass.flatMap((name) => faultOf("the variable", name, secretName.test(name) ? "its name looks like a secret's" : null)),
    ),
    ...contract.metrics.flatMap(({ from }) =>
      from.kind === "stdout" ? faultOf("the pattern", from.pattern, patternFault(from.pattern)) : [],
    ),
  ];
}

function packPathsOf({ runtime, data }: Environment): string[] {
  const lock = runtime?.kind === "python" ? runtime.lock : null;
  return [lock, data?.prepare ?? null, data?.prepareRuntime ?? null].filter((path) => path !== null);
}

function faultOf(what: string, named: string, fault: string | null): string[] {
  return fault === null ? [] : [`${what} ${JSON.stringify(named.slice(0, 200))}: ${fault}`];
}

function refused(expected: string, found: string, cause?: unknown): FrozenEnvironmentError {
  return new FrozenEnvironmentError(
    { expected, found, where: "the packet", todo: "Nothing of it was run." },
    cause === undefined ? undefined : { cause },
  );
}
