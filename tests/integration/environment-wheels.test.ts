import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Cache } from "../../src/adapters/environments/cache.js";
import { pythonRuntime } from "../../src/adapters/environments/runtime.js";
import { fill, temporaryCache, temporaryFolder } from "./environment-fixture.js";

/** A package that exists as sources alone, and says when it is built. */
let folder: string;
let cache: Cache;
let lock: string;
const before = { ...process.env };

beforeEach(async () => {
  cache = await temporaryCache();
  folder = await temporaryFolder();
  await fill(folder, {
    "evil-1.0/pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "evil-1.0/PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
    "evil-1.0/backend.py": backend(join(folder, "was-built")),
  });
  execFileSync("tar", ["-czf", "evil-1.0.tar.gz", "evil-1.0"], { cwd: folder });
  const digest = createHash("sha256")
    .update(readFileSync(join(folder, "evil-1.0.tar.gz")))
    .digest("hex");
  lock = `evil==1.0 --hash=sha256:${digest}\n`;
  Object.assign(process.env, { PIP_NO_INDEX: "1", PIP_FIND_LINKS: folder, PIP_NO_CACHE_DIR: "1", UV_FIND_LINKS: folder, UV_NO_CACHE: "1" });
});

afterEach(() => {
  for (const name of ["PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_NO_CACHE_DIR", "UV_FIND_LINKS", "UV_NO_CACHE"]) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
  rmSync(folder, { recursive: true, force: true });
});

function backend(mark: string): string {
  return `import os, zipfile
open(${JSON.stringify(mark)}, "w").close()
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "evil-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("evil.py", "")
        wheel.writestr("evil-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: evil\\nVersion: 1.0\\n")
        wheel.writestr("evil-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("evil-1.0.dist-info/RECORD", "")
    return name
`;
}

/** Whether the package's code ran on this machine, and the refusal in words. */
async function built(text: string, packages: "any" | "wheels"): Promise<[boolean, string | null]> {
  const file = join(folder, "requirements.lock");
  await writeFile(file, text);
  const refusal = await pythonRuntime(file, ">=3.9", cache, () => {}, packages).then(
    () => null,
    (error: Error) => error.message,
  );
  return [existsSync(join(folder, "was-built")), refusal];
}

test("a package of our own is built where it has to be", async () => {
  expect(await built(lock, "any")).toEqual([true, null]);
});

test("where wheels alone are allowed nothing is built, and the next build is as free as before", async () => {
  expect(await built(lock, "wheels")).toEqual([false, expect.stringContaining("the packages of the lock to be installed")]);
  expect(await built(lock, "any")).toEqual([true, null]);
});

test.each([
  ["takes it back", "--only-binary :none:\n"],
  ["gives leave under a shorter name", "--require-hashes --no-bin :all:\n"],
])("a lock that %s is refused there", async (_, option) => {
  expect(await built(option + lock, "wheels")).toEqual([false, expect.stringContaining("packages that need no building")]);
  // It would have been.
  expect(await built(option + lock, "any")).toEqual([true, null]);
});
