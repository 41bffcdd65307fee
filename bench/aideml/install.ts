import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Cache } from "../../src/adapters/environments/cache.js";

export const aidemlVersion = "0.2.2";
const requirements = fileURLToPath(new URL("./requirements.txt", import.meta.url));
/** Its numpy and pandas have wheels for these alone. */
const pythons = ["/usr/bin/python3", "python3.11", "python3.12", "python3.10", "python3"];
const isSuitable = "import ensurepip, sys, venv; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))";

/** Python of a virtual environment with aideml in it, in trialist's cache folder; made the first time, which takes a minute. */
export async function installAideml(): Promise<string> {
  const { root } = await Cache.open(process.env);
  const version = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 12);
  const folder = join(root, "bench", `aideml-${aidemlVersion}-${version}`);
  const python = join(folder, "bin", "python");
  const stamp = join(folder, "complete");
  if (existsSync(stamp)) return python;
  process.stderr.write(`  (installing aideml ${aidemlVersion} into ${folder})\n`);
  rmSync(folder, { recursive: true, force: true });
  run(suitablePython(), ["-m", "venv", folder]);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  run(python, [...pip, "--requirement", requirements]);
  run(python, [...pip, "--no-deps", `aideml==${aidemlVersion}`]);
  writeFileSync(stamp, "");
  return python;
}

function suitablePython(): string {
  const found = pythons.find((python) => spawnSync(python, ["-c", isSuitable]).status === 0);
  if (found !== undefined) return found;
  throw new Error(`aideml needs Python 3.10, 3.11 or 3.12 with venv; none of ${pythons.join(", ")} is one`);
}

function run(program: string, words: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} failed: ${error?.message ?? stderr.slice(-2000)}`);
}
