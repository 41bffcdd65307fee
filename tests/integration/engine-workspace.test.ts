import { readdirSync, readFileSync, statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLocalExecutor } from "../../src/adapters/executors/local.js";
import { giveToSandbox } from "../../src/adapters/sandbox/identity.js";
import { freezeFolder, type Host, readyEnvironment } from "../../src/app/environments.js";
import { type CandidateManifest, manifestOf } from "../../src/core/protocol/candidate.js";
import { digestOf } from "../../src/core/protocol/canonical.js";
import { AttemptFolders } from "../../src/research/engine/attempt-folders.js";
import { stageExecution } from "../../src/research/engine/stage-execution.js";
import { fill, temporaryCache, temporaryFolder } from "./environment-fixture.js";

const contract = `schema: trialist/environment@1
name: repository
description: "a repository"
surface: { editable: ["main.sh", "src/deep/**"], writable: [lib1, runs/new] }
baseline: .
stages: [{ name: train, run: sh main.sh, outputs: [listing], limits: { wall: 1 min } }]
metrics: [{ name: seconds, direction: minimize, from: { wall: train } }]
`;

/** A repository with many folders, a folder with many files beside an editable one, and names that hurt. */
function repository(folders: number, siblings: number): Record<string, string> {
  const files: Record<string, string> = { "environment.yaml": contract, "main.sh": "true\n", "src/deep/a.sh": "true\n" };
  for (let index = 0; index < folders; index++) files[`lib${index}/part/one.txt`] = `lib ${index}\n`;
  for (let index = 0; index < siblings; index++) files[`src/deep.d/beside ${index}.txt`] = `beside ${index}\n`;
  return {
    ...files,
    "src/near.txt": "near\n",
    "src/deep/more/kept.sh": "true\n",
    'with space/it\'s "ü".txt': "odd\n",
    "notes.txt": "notes\n",
  };
}

interface Lived {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly mounts: number;
}

/** Runs a candidate's stage in a repository, as a trial does. */
async function live(
  files: Readonly<Record<string, string>>,
  candidate: Readonly<Record<string, string>>,
  sandbox: "bubblewrap" | "none" = "bubblewrap",
): Promise<Lived & { contextFolder: string }> {
  const cache = await temporaryCache();
  const host: Host = { cache, variables: {} };
  const { frozen } = await freezeFolder(host, await fill(await temporaryFolder(), files));
  const executor = createLocalExecutor({ root: cache.folder("executors", "test") });
  try {
    const { prepared } = await readyEnvironment(host, frozen, executor, sandbox, () => undefined);
    const contents = new Map(Object.values(candidate).map((text) => [digestOf(text), Buffer.from(text)]));
    const manifest: CandidateManifest = manifestOf(
      Object.entries(candidate).map(([path, text]) => ({
        path,
        digest: digestOf(text),
        bytes: Buffer.byteLength(text),
        executable: false,
      })),
    );
    const [stage] = prepared.environment.stages;
    if (stage === undefined || prepared.contextFolder === null) throw new Error("the repository has a stage and a context");
    const execution = await stageExecution({
      id: "m1.1/train-1",
      stage: { ...stage, outputs: [] },
      repeat: 1,
      seed: 1,
      sandbox,
      prepared,
      folders: new AttemptFolders(cache.folder("scratch", "attempt"), giveToSandbox),
      manifest,
      content: (digest) => contents.get(digest) ?? new Uint8Array(),
      hostEnvironment: {},
      gpus: null,
      collectMaxBytes: 2 ** 20,
    });
    await executor.start(execution);
    const found = await executor.wait(execution.id);
    if (found.state === "gone") throw new Error(found.reason);
    const { stdout } = await executor.output(execution.id);
    return {
      exitCode: found.outcome.exitCode,
      stdout: Buffer.concat([stdout.head, stdout.tail]).toString("utf8"),
      mounts: execution.mounts.length,
      contextFolder: prepared.contextFolder,
    };
  } finally {
    await executor.close();
  }
}

/** Every file of the workspace with its digest, as the stage sees it. */
const listing = "find . -type f | LC_ALL=C sort | tr '\\n' '\\0' | xargs -0 sha256sum | sha256sum\n";

/** What that listing has to be. */
function expectedListing(files: Readonly<Record<string, string>>): string {
  const lines = Object.entries(files).map(([path, text]): [string, string] => [`./${path}`, text]);
  lines.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return digestOf(lines.map(([path, text]) => `${digestOf(text)}  ${path}\n`).join(""));
}

test.each([
  ["a small one", 3, 5, { "main.sh": listing }],
  ["many folders", 700, 5, { "main.sh": listing }],
  ["many files beside an editable file", 40, 1500, { "main.sh": listing, "src/deep/a.sh": "x\n" }],
  ["a folder of the candidate's own deep inside", 700, 20, { "main.sh": listing, "src/deep/new/er/b.sh": "x\n", "src/deep/a.sh": "y\n" }],
])("a stage sees every file of the repository under the candidate's: %s", async (_, folders, siblings, candidate) => {
  const files = repository(folders, siblings);
  const { "environment.yaml": _contract, "main.sh": _main, "src/deep/a.sh": _a, "src/deep/more/kept.sh": _kept, ...context } = files;
  const lived = await live(files, candidate);
  expect(lived.stdout.split(" ")[0]).toBe(expectedListing({ ...context, ...candidate }));
  expect(lived.mounts).toBeLessThan(80);
});

test("a stage may write in the root and beside its files, and nowhere into the frozen copy", async () => {
  const script = `
echo new > made.txt && echo new > src/deep/made.txt && echo ok
for f in notes.txt src/deep.d/'beside 1.txt' lib0/part/one.txt; do
  chmod u+w "$f" 2>/dev/null; { echo changed > "$f"; } 2>/dev/null && echo "wrote $f"
done
{ echo x > lib0/part/two.txt; } 2>/dev/null || echo read-only
echo two > lib1/part/two.txt && echo one >> lib1/part/one.txt && echo r > runs/new/r && echo writable
rm -f notes.txt; echo own > notes.txt && cat notes.txt
`;
  const lived = await live(repository(700, 30), { "main.sh": script, "src/deep/a.sh": "x\n" });
  expect([lived.stdout.split("\n")[0], lived.stdout]).toEqual(["ok", expect.not.stringContaining("wrote lib0")]);
  expect(lived.stdout).toContain("read-only");
  expect(lived.stdout).toContain("own");
  expect(lived.stdout).toContain("writable");
  for (const [path, text] of Object.entries({
    "lib1/part/one.txt": "lib 1\n",
    "notes.txt": "notes\n",
    "src/deep.d/beside 1.txt": "beside 1\n",
    "lib0/part/one.txt": "lib 0\n",
  })) {
    expect(await readFile(join(lived.contextFolder, path), "utf8")).toBe(text);
    const { mode, uid } = await stat(join(lived.contextFolder, path));
    expect([mode & 0o777, uid]).toEqual([0o444, process.getuid?.()]);
  }
});

test("without a sandbox a stage writes into copies alone", async () => {
  const lived = await live(repository(700, 5), { "main.sh": "echo changed > lib0/part/one.txt && cat lib0/part/one.txt\n" }, "none");
  expect(lived.stdout).toBe("changed\n");
  expect(readFileSync(join(lived.contextFolder, "lib0/part/one.txt"), "utf8")).toBe("lib 0\n");
});

test("a workspace takes room for what may change alone", async () => {
  const files = { ...repository(700, 5), "weights.bin": "w".repeat(4 * 2 ** 20) };
  const lived = await live(files, { "main.sh": "wc -c < weights.bin\n" });
  expect(lived.stdout.trim()).toBe(String(4 * 2 ** 20));
  const workspace = join(lived.contextFolder, "../../../scratch/attempt/train-1/workspace");
  const blocks = readdirSync(workspace, { recursive: true, withFileTypes: true }).map((entry) => {
    const facts = statSync(join(entry.parentPath, entry.name));
    return facts.isFile() && facts.nlink === 1 ? facts.blocks : 0;
  });
  expect(blocks.reduce((sum, each) => sum + each, 0) * 512).toBeLessThan(64 * 1024);
});
