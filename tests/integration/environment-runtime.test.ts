import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { chmod, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { withLock } from "../../src/adapters/environments/build-lock.js";
import { Cache } from "../../src/adapters/environments/cache.js";
import { findPython } from "../../src/adapters/environments/python-interpreter.js";
import { satisfies } from "../../src/adapters/environments/python-versions.js";
import { prefixRuntime, pythonRuntime } from "../../src/adapters/environments/runtime.js";
import { reachableRuntime } from "../../src/adapters/environments/staged-prefix.js";
import { fill, temporaryCache, temporaryFolder } from "./environment-fixture.js";

const idna =
  "idna==3.10 \\\n    --hash=sha256:12f65c9b470abda6dc35cf8e63cc574b1c52b11df2c86030af0ac09b01b13ea9 \\\n    --hash=sha256:946d195a0d259cbba61165e88e65941f16e9b36ea6ddb97f00452bae8b1287d3\n";

function ask(runtime: Awaited<ReturnType<typeof pythonRuntime>>, code: string): string {
  return execFileSync(join(runtime.path[0] ?? "", "python"), ["-I", "-c", code], { encoding: "utf8" }).trim();
}

describe("a runtime from a hashed lock", () => {
  let cache: Cache;
  let lock: string;
  const said: string[] = [];
  beforeAll(async () => {
    const folder = execFileSync("mktemp", ["-d", "/tmp/trialist-runtime-XXXXXX"], { encoding: "utf8" }).trim();
    execFileSync("chmod", ["755", folder]);
    cache = await Cache.open({ TRIALIST_CACHE: folder });
    lock = join(await fill(folder, { "requirements.lock": idna }), "requirements.lock");
    return () => rm(folder, { recursive: true, force: true });
  });

  test("is built once, also by two at a time, holds the lock's packages and their bytecode, and no installer", async () => {
    const [first, second] = await Promise.all([
      pythonRuntime(lock, ">=3.9", cache, (line) => said.push(line)),
      pythonRuntime(lock, ">=3.9", cache, (line) => said.push(line)),
    ]);
    expect(second).toEqual(first);
    expect(said.filter((line) => line.startsWith("building"))).toHaveLength(1);
    expect(said.filter((line) => line.startsWith("waiting"))).toHaveLength(1);
    expect(ask(first, "import idna, os; print(idna.__version__, os.path.exists(idna.__cached__))")).toBe("3.10 True");
    expect(ask(first, "import importlib.util as u; print(u.find_spec('pip'))")).toBe("None");
    // Its own folders at their places; packages of the system's own interpreters are shown empty.
    const own = first.mounts.filter((mount) => mount.source === mount.target);
    const hidden = first.mounts.filter((mount) => mount.source !== mount.target);
    expect(own.length).toBeGreaterThan(0);
    expect(hidden.every((mount) => readdirSync(mount.source).length === 0 && /^\/usr\/.*(packages|library)$/.test(mount.target))).toBe(
      true,
    );
    expect(first.mounts.every((mount) => mount.mode === "read-only")).toBe(true);
    await pythonRuntime(lock, ">=3.9", cache, (line) => said.push(line));
    expect(said).toHaveLength(2);
  });

  test("a build that was broken off is built again", async () => {
    const runtime = await pythonRuntime(lock, ">=3.9", cache, () => {});
    const folder = join(runtime.path[0] ?? "", "..");
    await rm(join(folder, ".complete"));
    await rm(join(folder, "lib"), { recursive: true });
    await pythonRuntime(lock, ">=3.9", cache, () => {});
    expect(ask(runtime, "import idna; print(idna.__version__)")).toBe("3.10");
  });

  test("without uv, pip builds the same", async () => {
    const other = await Cache.open({ TRIALIST_CACHE: join(cache.root, "pip") });
    const before = { path: process.env["PATH"], uv: process.env["TRIALIST_UV"] };
    process.env["PATH"] = "/usr/bin:/bin";
    try {
      const runtime = await pythonRuntime(lock, ">=3.9", other, () => {});
      expect(ask(runtime, "import idna, os; print(idna.__version__, os.path.exists(idna.__cached__))")).toBe("3.10 True");
      expect(ask(runtime, "import importlib.util as u; print(u.find_spec('pip'))")).toBe("None");
    } finally {
      process.env["PATH"] = before.path;
    }
  });

  test("a wrong hash is refused and nothing is left", async () => {
    const other = await Cache.open({ TRIALIST_CACHE: join(cache.root, "wrong") });
    const wrong = join(cache.root, "wrong.lock");
    await writeFile(wrong, idna.replaceAll(/sha256:\w{4}/g, "sha256:0000"));
    await expect(pythonRuntime(wrong, ">=3.9", other, () => {})).rejects.toThrow(/expected the packages of the lock to be installed/);
    expect(readdirSync(join(other.root, "runtimes")).filter((name) => !name.endsWith(".lock"))).toEqual([]);
  });
});

test("a lock without hashes or with a registry is refused before anything is built", async () => {
  const cache = await temporaryCache();
  const folder = await fill(await temporaryFolder(), { "a.lock": "idna==3.10\n", "b.lock": "-i https://example.org\n" });
  await expect(pythonRuntime(join(folder, "a.lock"), ">=3.9", cache, () => {})).rejects.toThrow(/a\.lock:1.*--hash/);
  await expect(pythonRuntime(join(folder, "b.lock"), ">=3.9", cache, () => {})).rejects.toThrow(/b\.lock:1/);
});

test("an interpreter is real, reachable, and of the asked version; else the error names what there is", async () => {
  const python = await findPython(">=3.9");
  expect(execFileSync(python.executable, ["-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"], { encoding: "utf8" }).trim()).toBe(
    python.version,
  );
  await expect(findPython(">=3.99")).rejects.toThrow(/expected a Python >=3.99.*found \/.* is 3\.\d/);
});

test.each([
  ["3.11.7", ">=3.10", true],
  ["3.11.7", ">=3.12", false],
  ["3.9.1", ">=3.10", false],
  ["3.11.7", ">=3.10,<3.12", true],
  ["3.12.0", ">=3.10,<3.12", false],
  ["3.11.7", "==3.11.*", true],
  ["3.11.7", "==3.11", false],
  ["3.11.7", "~=3.10", true],
  ["3.11.7", "~=3.10.0", false],
  ["3.11.7", "!=3.11.*", false],
])("%s satisfies %s: %s", (version, requirement, expected) => {
  expect(satisfies(version, requirement)).toBe(expected);
});

test("a venv in use brings the installation that it stands on", async () => {
  const folder = await temporaryFolder();
  const python = await findPython(">=3.9");
  execFileSync(python.executable, ["-m", "venv", "--without-pip", join(folder, "venv")]);
  const runtime = prefixRuntime(join(folder, "venv"));
  expect(runtime.path).toEqual([join(folder, "venv/bin")]);
  expect(runtime.mounts.map((mount) => mount.source)).toContain(join(folder, "venv"));
  expect(runtime.mounts.some((mount) => mount.source === "/usr" || mount.source === "/")).toBe(false);
});

test("a lock is held by one at a time and freed when its holder fails", async () => {
  const path = join(await temporaryFolder(), "lock");
  const order: string[] = [];
  const hold = (name: string): Promise<void> =>
    withLock(
      path,
      () => order.push(`${name} waits`),
      async () => {
        order.push(`${name} in`);
        await new Promise((resolve) => setTimeout(resolve, 100));
        order.push(`${name} out`);
        if (name === "a") throw new RangeError("a failed");
      },
    );
  const [a, b] = await Promise.allSettled([hold("a"), hold("b")]);
  expect([a.status, b.status]).toEqual(["rejected", "fulfilled"]);
  expect(order).toEqual(["a in", "b waits", "a out", "b in", "b out"]);
});

test.runIf(process.getuid?.() === 0)("a prefix in a closed folder gets a second name that the sandbox's user can reach", async () => {
  const [folder, cache] = [await temporaryFolder(), await temporaryCache()];
  const closed = join(folder, "closed");
  await fill(closed, { "env/bin/tool": "#!/bin/sh\necho 1\n" });
  await chmod(closed, 0o700);
  const prefix = join(closed, "env");
  const runtime = await reachableRuntime(prefixRuntime(prefix), cache, () => undefined);
  expect(runtime.path).toEqual([join(prefix, "bin")]);
  const [mount] = runtime.mounts;
  expect(mount).toMatchObject({ target: prefix, mode: "read-only" });
  expect(mount?.source.startsWith(cache.root)).toBe(true);
  // No bytes are copied, and what is installed later makes another one.
  expect((await stat(join(mount?.source ?? "", "bin", "tool"))).ino).toBe((await stat(join(prefix, "bin", "tool"))).ino);
  expect((await reachableRuntime(prefixRuntime(prefix), cache, () => undefined)).mounts).toEqual(runtime.mounts);
  await fill(closed, { "env/bin/another": "" });
  expect((await reachableRuntime(prefixRuntime(prefix), cache, () => undefined)).mounts).not.toEqual(runtime.mounts);
});
