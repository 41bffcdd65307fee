import { chmod, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Cache } from "../../src/adapters/environments/cache.js";
import { freezeEnvironment } from "../../src/adapters/environments/freeze.js";
import { loadEnvironment } from "../../src/adapters/environments/load.js";
import { type DataFolders, prepareData } from "../../src/adapters/environments/prepare-data.js";
import { createLocalExecutor } from "../../src/adapters/executors/local.js";
import { digestOf } from "../../src/core/protocol/canonical.js";
import { contractWith, makePack, temporaryCache } from "./environment-fixture.js";

const script = `import os, pathlib, random, sys
out = pathlib.Path(sys.argv[1])
random.seed(int(os.environ["TRIALIST_SEED"]))
for name in ("public", "inloop", "heldout"):
    (out / name / "deep er").mkdir(parents=True)
    (out / name / "deep er" / "rows.csv").write_text("".join(f"{random.random()}\\n" for _ in range(5)))
`;

const contract = contractWith([
  "playbook:",
  "data: { prepare: prepare.py, public: data/public, inloop: data/inloop, heldout: data/heldout }\nplaybook:",
]);

async function prepared(cache: Cache, prepare: string, given = contract, said: string[] = []): Promise<DataFolders> {
  const folder = await makePack({ "environment.yaml": given, "prepare.py": prepare });
  const frozen = await freezeEnvironment(await loadEnvironment(folder), cache);
  const executor = createLocalExecutor({ root: cache.folder("executors", "prepare") });
  onTestFinished(() => executor.close());
  return prepareData(frozen, cache, executor, "bubblewrap", (line) => said.push(line));
}

function rows(folder: string | null): Promise<string> {
  return readFile(join(folder ?? "", "deep er/rows.csv"), "utf8");
}

test("data is prepared once, the same everywhere, with a canary in each hidden folder", async () => {
  const [here, there] = [await temporaryCache(), await temporaryCache()];
  const said: string[] = [];
  const first = await prepared(here, script, contract, said);
  const again = await prepared(here, script, contract, said);
  expect(said.filter((line) => line.startsWith("preparing"))).toHaveLength(1);
  expect(again).toMatchObject({ public: first.public, inloop: first.inloop, heldout: first.heldout, canaries: first.canaries });
  const other = await prepared(there, script);
  for (const part of ["public", "inloop", "heldout"] as const) expect(await rows(other[part])).toBe(await rows(first[part]));
  expect(Object.keys(first.canaries)).toEqual(["heldout", "inloop"]);
  expect(digestOf(await readFile(join(first.inloop ?? "", ".trialist-canary"), "utf8"))).toBe(first.canaries["inloop"]);
  expect(first.canaries).not.toEqual(other.canaries);
  expect(await readdir(first.public ?? "")).toEqual(["deep er"]);
  expect((await stat(join(first.inloop ?? "", "deep er/rows.csv"))).mode & 0o777).toBe(0o444);
  expect((await readdir(join(here.root, "data"))).filter((name) => name.includes("partial"))).toEqual([]);
});

test("another script or another seed is other data", async () => {
  const cache = await temporaryCache();
  const folders = [
    await prepared(cache, script),
    await prepared(cache, `${script}# changed\n`),
    await prepared(cache, script, contract.replace("name: small", "name: small\nseed: 7")),
  ];
  expect(new Set(folders.map((folder) => folder.public)).size).toBe(3);
  expect(await rows(folders[2]?.public ?? null)).not.toBe(await rows(folders[0]?.public ?? null));
});

test("altered data is named; held-out may be gone, until it is asked for", async () => {
  const cache = await temporaryCache();
  const data = await prepared(cache, script);
  await data.checkHeldout();
  await rename(data.heldout ?? "", join(cache.root, "moved"));
  const later = await prepared(cache, script);
  expect(later.heldout).toBe(data.heldout);
  await expect(later.checkHeldout()).rejects.toThrow(/heldout is gone/);
  const file = join(data.inloop ?? "", "deep er/rows.csv");
  await chmod(file, 0o644);
  await writeFile(file, "0\n");
  await expect(prepared(cache, script)).rejects.toThrow(/deep er\/rows.csv has other content.*so that it is made again/);
});

test.each([
  ["fails", "raise SystemExit('no such table')", /exit code 1: no such table/],
  ["writes nothing", "pass", /expected prepare.py to write OUT\/public/],
  [
    "writes a link",
    "import os, sys; os.makedirs(sys.argv[1] + '/public'); os.symlink('/etc/passwd', sys.argv[1] + '/public/x')",
    /regular files alone/,
  ],
  ["reaches the network", "import socket; socket.create_connection(('1.1.1.1', 53), 2)", /exit code 1/],
  ["reads the rest of the pack", "import sys; open('evaluate.sh')", /exit code 1/],
])("a preparation that %s is refused and leaves nothing", async (_, code, message) => {
  const cache = await temporaryCache();
  await expect(prepared(cache, code)).rejects.toThrow(message);
  expect((await readdir(join(cache.root, "data"))).filter((name) => !name.endsWith(".lock"))).toEqual([]);
});

test("data that the pack brings is used as it was frozen", async () => {
  const cache = await temporaryCache();
  const folder = await makePack({
    "environment.yaml": contractWith(["playbook:", "data: { public: p, inloop: i, heldout: h }\nplaybook:"]),
    "p/a": "1",
    "i/a": "2",
    "h/a": "3",
  });
  const frozen = await freezeEnvironment(await loadEnvironment(folder), cache);
  const executor = createLocalExecutor({ root: cache.folder("executors", "x") });
  onTestFinished(() => executor.close());
  const data = await prepareData(frozen, cache, executor, "bubblewrap", () => {});
  expect(await readFile(join(data.inloop ?? "", "a"), "utf8")).toBe("2");
  expect(Object.keys(data.canaries)).toEqual(["heldout", "inloop"]);
  await data.checkHeldout();
  await rm(data.heldout ?? "", { recursive: true });
  await expect(data.checkHeldout()).rejects.toThrow(/is gone/);
});
