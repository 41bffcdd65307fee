import { randomBytes } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { canonicalJson, digestOfValue } from "../../core/protocol/canonical.js";
import type { Cache } from "./cache.js";
import { openRegular } from "./file-digest.js";

/** What a machine measured of itself is kept under what it hangs on: an environment, a rule, a host. Plain JSON. */
export type MeasurementKey = Readonly<Record<string, unknown>> & { readonly kind: string };

const keptFile = z.strictObject({ schema: z.literal("trialist/kept-measurement@1"), key: z.unknown(), value: z.unknown() });

/** Larger ones are neither written nor read. */
const largestBytes = 128 * 2 ** 20;

/**
 * What was kept under a key, checked; null where there is nothing. A file that is no such thing counts as nothing, and
 * `note` hears why: it is only a cache, and what it says is measured anew.
 */
export async function readKept<T>(cache: Cache, key: MeasurementKey, shape: z.ZodType<T>, note: (line: string) => void): Promise<T | null> {
  const path = fileOf(cache, key);
  try {
    const text = await readBounded(path);
    if (text === null) return null;
    const file = keptFile.parse(JSON.parse(text));
    if (canonicalJson(file.key) !== canonicalJson(key)) throw new RangeError("it was kept under another key");
    return shape.parse(file.value);
  } catch (error) {
    note(`${path} is left aside: ${reasonOf(error)}`);
    return null;
  }
}

/** Keeps a value, whole or not at all. What is too large is left away; what cannot be written is said to `note`, and no more. */
export async function keep(cache: Cache, key: MeasurementKey, value: unknown, note: (line: string) => void): Promise<void> {
  const text = canonicalJson({ schema: "trialist/kept-measurement@1", key, value });
  if (text.length > largestBytes) return;
  const path = fileOf(cache, key);
  const temporary = join(dirname(path), `.${randomBytes(8).toString("hex")}.partial`);
  try {
    const file = await open(temporary, "wx", 0o644);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    note(`${path} could not be written: ${reasonOf(error)}`);
  }
}

/** What was kept under this key counts no more. */
export async function forget(cache: Cache, key: MeasurementKey): Promise<void> {
  await rm(fileOf(cache, key), { force: true });
}

function fileOf(cache: Cache, key: MeasurementKey): string {
  return cache.folder("calibrations", `${key.kind}-${digestOfValue(key).slice(0, 40)}.json`);
}

async function readBounded(path: string): Promise<string | null> {
  const file = await openRegular(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (file === null) return null;
  try {
    const { size } = await file.stat();
    if (size > largestBytes) throw new RangeError(`it holds ${size} bytes, at most ${largestBytes} were expected`);
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) return `it has another shape: ${z.prettifyError(error).slice(0, 300).replaceAll("\n", " ")}`;
  return error instanceof Error ? error.message : String(error);
}
