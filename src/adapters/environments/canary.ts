import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Digest, digestOf } from "../../core/protocol/canonical.js";

/** Name of the file in every hidden folder that nothing reads by right: its content anywhere outside proves that something did. */
export const canaryName = ".trialist-canary";

/** Plants a canary and returns the digest by which it is known outside of the folder. */
export async function plantCanary(folder: string): Promise<Digest> {
  const canary = randomBytes(32).toString("hex");
  await writeFile(join(folder, canaryName), canary, { mode: 0o444 });
  return digestOf(canary);
}
