import { chmod, readdir, readFile, rename, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Cache, CacheUnusableError } from "../../src/adapters/environments/cache.js";
import { DigestMemory } from "../../src/adapters/environments/digest-memory.js";
import { digestEnvironment, freezeEnvironment, openFrozen, readCandidate } from "../../src/adapters/environments/freeze.js";
import { loadEnvironment } from "../../src/adapters/environments/load.js";
import { candidateDigest } from "../../src/core/protocol/candidate.js";
import { digestOf } from "../../src/core/protocol/canonical.js";
import { contractWith, fill, makePack, temporaryCache, temporaryFolder } from "./environment-fixture.js";

async function digestOfFolder(folder: string): Promise<string> {
  return digestEnvironment(await loadEnvironment(folder));
}

test("the same files have the same digest, wherever they lie, whenever they were written", async () => {
  const [here, there] = [await makePack(), await makePack()];
  const digest = await digestOfFolder(here);
  expect(await digestOfFolder(here)).toBe(digest);
  expect(await digestOfFolder(there)).toBe(digest);
  await fill(there, { "__pycache__/evaluate.cpython-311.pyc": "x", ".git/HEAD": "x", ".DS_Store": "x" });
  expect(await digestOfFolder(there)).toBe(digest);
  const contract = await readFile(join(there, "environment.yaml"), "utf8");
  await writeFile(join(there, "environment.yaml"), `# the same in other words\n${contract.replace("1 KiB", "1024 B")}`);
  expect(await digestOfFolder(there)).toBe(digest);
});

test.each([
  "description.md",
  "knowledge/prior.md",
  "baseline/solution.sh",
  "references/other/solution.sh",
  "evaluate.sh",
  "playbook/propose.sh",
])("another %s has another digest", async (path) => {
  const folder = await makePack();
  const digest = await digestOfFolder(folder);
  await writeFile(join(folder, path), "changed\n");
  expect(await digestOfFolder(folder)).not.toBe(digest);
});

test("another contract, another executable bit, another file has another digest", async () => {
  const digests = new Set([
    await digestOfFolder(await makePack()),
    await digestOfFolder(await makePack({ "environment.yaml": contractWith(["wall: 10 s", "wall: 11 s"]) })),
    await digestOfFolder(await makePack({ "helper.sh": "" })),
  ]);
  const folder = await makePack();
  await chmod(join(folder, "evaluate.sh"), 0o755);
  digests.add(await digestOfFolder(folder));
  expect(digests.size).toBe(4);
});

describe("the frozen copy", () => {
  test("is read-only, complete, found by its digest, and made once", async () => {
    const cache = await temporaryCache();
    const loaded = await loadEnvironment(await makePack());
    const [frozen, again, third] = await Promise.all([
      freezeEnvironment(loaded, cache),
      freezeEnvironment(loaded, cache),
      freezeEnvironment(loaded, cache),
    ]);
    expect(again).toEqual(frozen);
    expect(third).toEqual(frozen);
    expect(await openFrozen(cache, frozen.digest)).toEqual(frozen);
    expect(frozen.digest).toBe(await digestEnvironment(loaded));
    expect(frozen.environment).toEqual(loaded.environment);
    expect(frozen.contextFolder).toBeNull();
    expect((await stat(join(frozen.packFolder, "evaluate.sh"))).mode & 0o777).toBe(0o444);
    expect(await readdir(join(cache.root, "environments"))).toEqual([frozen.digest]);
  });

  test.each([
    ["altered", async (pack: string) => writeFile(join(pack, "evaluate.sh"), "echo cheat\n")],
    ["dropped", async (pack: string) => rm(join(pack, "evaluate.sh"))],
    ["added", async (pack: string) => writeFile(join(pack, "sitecustomize.py"), "")],
  ])("a file that was %s is named, and freezing again mends it", async (_, tamper) => {
    const cache = await temporaryCache();
    const loaded = await loadEnvironment(await makePack());
    const { digest, packFolder } = await freezeEnvironment(loaded, cache);
    await chmod(join(packFolder, "evaluate.sh"), 0o644);
    await tamper(packFolder);
    await expect(openFrozen(cache, digest)).rejects.toThrow(/evaluate\.sh|sitecustomize\.py/);
    expect((await freezeEnvironment(loaded, cache)).digest).toBe(digest);
    expect(await readFile(join(packFolder, "evaluate.sh"), "utf8")).toBe("true\n");
  });

  test("one that is not there says what to do", async () => {
    await expect(openFrozen(await temporaryCache(), digestOf("nothing"))).rejects.toThrow(/Start the run again/);
  });

  test("a repository's context is frozen beside it", async () => {
    const cache = await temporaryCache();
    const contract =
      "schema: trialist/environment@1\nname: own\nsurface: { editable: [a.sh] }\nbaseline: .\nstages: [{ name: run, run: sh a.sh }]\nmetrics: [{ name: s, direction: minimize, from: { wall: run } }]\n";
    const folder = await fill(await temporaryFolder(), { "environment.yaml": contract, "a.sh": "true", "lib/b.sh": "true" });
    const frozen = await freezeEnvironment(await loadEnvironment(folder), cache);
    expect(await readdir(frozen.contextFolder ?? "", { recursive: true })).toEqual(["lib", "lib/b.sh"]);
    await writeFile(join(folder, "lib/b.sh"), "false");
    expect(await digestOfFolder(folder)).not.toBe(frozen.digest);
  });
});

describe("data that the pack brings", () => {
  const contract = contractWith(["playbook:", "data: { public: d/public, inloop: d/inloop, heldout: d/heldout }\nplaybook:"]);
  const files = { "environment.yaml": contract, "d/public/x.csv": "1\n", "d/inloop/y.csv": "2\n", "d/heldout/y.csv": "3\n" };

  test("lies apart from the pack, with canaries; public and in-loop data count, held-out is not looked at", async () => {
    const cache = await temporaryCache();
    const folder = await makePack(files);
    const frozen = await freezeEnvironment(await loadEnvironment(folder), cache);
    expect(await readdir(frozen.packFolder)).not.toContain("d");
    expect(await readdir(join(frozen.dataFolder ?? "", "inloop"))).toEqual([".trialist-canary", "y.csv"]);
    expect(await readdir(join(frozen.dataFolder ?? "", "public"))).toEqual(["x.csv"]);
    await rename(join(folder, "d/heldout"), join(folder, "../moved-away")).catch(() => rm(join(folder, "d/heldout"), { recursive: true }));
    await rm(join(frozen.dataFolder ?? "", "heldout"), { recursive: true });
    expect(await digestOfFolder(folder)).toBe(frozen.digest);
    expect((await openFrozen(cache, frozen.digest)).digest).toBe(frozen.digest);
    await writeFile(join(folder, "d/inloop/y.csv"), "9\n");
    expect(await digestOfFolder(folder)).not.toBe(frozen.digest);
    await rm(join(folder, "../moved-away"), { recursive: true, force: true });
  });
});

test("a candidate is read with its bytes and keeps its name", async () => {
  const loaded = await loadEnvironment(await makePack());
  const candidate = await readCandidate(loaded.folder, loaded.baseline);
  expect(candidate.manifest.files).toEqual([
    { path: "solution.sh", digest: digestOf('echo 1 > "$TRIALIST_OUTPUT/answer.txt"\n'), bytes: 39, executable: false },
  ]);
  expect(candidateDigest(candidate.manifest)).toBe(candidateDigest((await readCandidate(loaded.folder, loaded.baseline)).manifest));
  expect(candidate.contents.size).toBe(1);
});

describe("the cache folder", () => {
  test("is where TRIALIST_CACHE says, and every user can pass through it whatever the umask", async () => {
    const before = process.umask(0o077);
    try {
      const cache = await Cache.open({ TRIALIST_CACHE: join(await temporaryFolder(), "a/b") });
      for (const folder of [cache.root, cache.folder("scratch", "")]) expect((await stat(folder)).mode & 0o777).toBe(0o755);
    } finally {
      process.umask(before);
    }
  });

  test.runIf(process.getuid?.() === 0)("under root, one behind a closed folder is refused with what to do", async () => {
    const closed = await temporaryFolder();
    await chmod(closed, 0o700);
    const opened = Cache.open({ TRIALIST_CACHE: join(closed, "cache") });
    await expect(opened).rejects.toThrow(CacheUnusableError);
    await expect(opened).rejects.toThrow(/has mode 700.*TRIALIST_CACHE/);
  });

  test("one that is a file is refused", async () => {
    const folder = await fill(await temporaryFolder(), { file: "" });
    await expect(Cache.open({ TRIALIST_CACHE: join(folder, "file") })).rejects.toThrow(CacheUnusableError);
  });
});

describe("what was read once", () => {
  /** As if it had rested for a while: what changed just now is never trusted. */
  async function rested(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 2100));
  }

  /** Changes a file's bytes and puts its size and its times back. */
  async function swap(path: string, text: string): Promise<void> {
    const { atime, mtime, mode } = await stat(path);
    await chmod(path, 0o644);
    await writeFile(path, text);
    await chmod(path, mode & 0o777);
    await utimes(path, atime, mtime);
  }

  test("is read again when it changed, also to the same size with its time put back", async () => {
    const cache = await temporaryCache();
    const folder = await makePack();
    await rested();
    const digest = await digestEnvironment(await loadEnvironment(folder), cache);
    expect(await digestEnvironment(await loadEnvironment(folder), cache)).toBe(digest);
    await swap(join(folder, "evaluate.sh"), "fals\n");
    const changed = await digestEnvironment(await loadEnvironment(folder), cache);
    expect(changed).not.toBe(digest);
    expect(changed).toBe(await digestEnvironment(await loadEnvironment(folder)));
  });

  test("and frozen is checked again when it changed, also to the same size with its time put back", async () => {
    const cache = await temporaryCache();
    const { digest, packFolder } = await freezeEnvironment(await loadEnvironment(await makePack()), cache);
    await openFrozen(cache, digest);
    await swap(join(packFolder, "evaluate.sh"), "fals\n");
    await expect(openFrozen(cache, digest)).rejects.toThrow(/evaluate\.sh has other content/);
  });

  test("is not read again while it rests", async () => {
    const cache = await temporaryCache();
    const folder = await makePack();
    await rested();
    const memory = DigestMemory.open(cache, folder);
    const file = join(folder, "evaluate.sh");
    const first = await memory.digest(file);
    memory.close();
    const again = DigestMemory.open(cache, folder);
    await chmod(file, 0o644);
    expect(await again.digest(file)).toEqual(first);
    again.remember(file, digestOf("what it remembers"));
    again.close();
    const third = DigestMemory.open(cache, folder);
    expect((await third.digest(file)).digest).toBe(digestOf("what it remembers"));
    third.close();
  });

  test("is read as ever when the memory is no database", async () => {
    const cache = await temporaryCache();
    const folder = await makePack();
    const digest = await digestEnvironment(await loadEnvironment(folder), cache);
    for (const name of await readdir(cache.folder("digests", "")))
      await writeFile(cache.folder("digests", name), "no database\n".repeat(500));
    expect(await digestEnvironment(await loadEnvironment(folder), cache)).toBe(digest);
  });
});

test("holes of a file stay holes in the frozen copy", async () => {
  const cache = await temporaryCache();
  const contract =
    "schema: trialist/environment@1\nname: own\nsurface: { editable: [a.sh] }\nbaseline: .\nstages: [{ name: run, run: sh a.sh }]\nmetrics: [{ name: s, direction: minimize, from: { wall: run } }]\n";
  const folder = await fill(await temporaryFolder(), { "environment.yaml": contract, "a.sh": "true", "weights.bin": "begin" });
  await truncate(join(folder, "weights.bin"), 300 * 2 ** 20);
  const { packFolder } = await freezeEnvironment(await loadEnvironment(folder), cache);
  const copied = await stat(join(packFolder, "weights.bin"));
  expect([copied.size, copied.blocks * 512 < 2 ** 22]).toEqual([300 * 2 ** 20, true]);
});

describe("a folder that was frozen before", () => {
  /** Freezes a pack, then changes its contract and one file, and freezes it again. */
  async function twice(between: (pack: string) => Promise<void>): Promise<{ first: string; second: string }> {
    const cache = await temporaryCache();
    const folder = await makePack();
    const first = await freezeEnvironment(await loadEnvironment(folder), cache);
    await between(first.packFolder);
    await writeFile(join(folder, "environment.yaml"), contractWith(["wall: 10 s", "wall: 11 s"]));
    await writeFile(join(folder, "description.md"), "changed\n");
    const second = await freezeEnvironment(await loadEnvironment(folder), cache);
    expect(second.digest).not.toBe(first.digest);
    await openFrozen(cache, second.digest);
    return { first: first.packFolder, second: second.packFolder };
  }
  const inode = async (folder: string, path: string): Promise<number> => (await stat(join(folder, path))).ino;

  test("shares what stayed the same with the earlier copy, and nothing else", async () => {
    const { first, second } = await twice(async () => undefined);
    expect(await inode(second, "evaluate.sh")).toBe(await inode(first, "evaluate.sh"));
    expect(await inode(second, "description.md")).not.toBe(await inode(first, "description.md"));
    expect(await readFile(join(second, "description.md"), "utf8")).toBe("changed\n");
  });

  test("takes no file from a copy that was altered", async () => {
    const altered = async (pack: string): Promise<void> => {
      await chmod(join(pack, "evaluate.sh"), 0o644);
      await writeFile(join(pack, "evaluate.sh"), "echo 1\n");
      await chmod(join(pack, "evaluate.sh"), 0o444);
    };
    const { first, second } = await twice(altered);
    expect(await readFile(join(second, "evaluate.sh"), "utf8")).not.toBe(await readFile(join(first, "evaluate.sh"), "utf8"));
  });
});
