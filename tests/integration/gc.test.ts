import { existsSync, lstatSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSqliteLedger } from "../../src/adapters/ledger/sqlite-ledger.js";
import { createRun } from "../../src/app/create-run.js";
import { type Host, openHost } from "../../src/app/environments.js";
import { runKey } from "../../src/app/executors.js";
import { extendRun } from "../../src/app/extend-run.js";
import { forkRun } from "../../src/app/fork-run.js";
import { collectGarbage, type GarbageKind, type GarbageReport } from "../../src/app/gc.js";
import { inspectRun } from "../../src/app/inspect.js";
import { operate } from "../../src/app/operate.js";
import { ownRun } from "../../src/app/own-run.js";
import { Project } from "../../src/app/project.js";
import { verifyRun } from "../../src/app/verify.js";
import { digestOf } from "../../src/core/protocol/canonical.js";
import { Lab } from "../support/lab.js";

let lab: Lab;
let host: Host;
let project: Project;
beforeEach(async () => {
  lab = new Lab();
  host = await openHost(lab.variables);
  project = new Project(lab.project);
});
afterEach(() => lab.remove());

/** Two trials: the first is kept, the second is not. Each writes a large and a small output with its number in them. */
async function finishedRun(name: string, keep = "best"): Promise<void> {
  const candidate = (score: number): string =>
    `printf ${score} > $TRIALIST_OUTPUT/small; { printf ${score}; head -c 100000 /dev/zero; } > $TRIALIST_OUTPUT/large; echo score ${score}\\n`;
  lab.write({
    "environment.yaml": `schema: trialist/environment@1
name: outputs
surface: { editable: [main.sh] }
stages: [{ name: train, run: sh main.sh, outputs: [small, large], limits: { wall: 1 min } }]
metrics: [{ name: score, direction: maximize, from: { stdout: "score (.*)", stage: train } }]
noise: { calibrate: 2, remeasure_every: 0 }
promotion: { rule: any }
keep_outputs: ${keep}
`,
    "baseline/main.sh": candidate(1).replace("\\n", "\n"),
    "propose.py": `import json, sys
left = json.load(sys.stdin)["view"]["trialsLeft"]
print(json.dumps({"plan": {"hypothesis": "h"}, "files": {"main.sh": ${JSON.stringify(candidate(777)).replaceAll("\\\\n", "\\n")}.replace("777", "9" if left == 2 else "5")}}))
`,
  });
  await createRun(project, host, {
    environmentFolder: lab.pack,
    name,
    organization: { name: "tree", configuration: {} },
    researcher: "command:python3 propose.py",
    budget: { trials: 2, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    promotion: {},
    seed: 1,
    parallel: 1,
    sandbox: "bubblewrap",
  });
  const owned = await ownRun(project, host, name, { frozen: false, progress: () => undefined });
  await owned.runner.work();
  await owned.close();
}

function large(score: number): string {
  return digestOf(Buffer.concat([Buffer.from(String(score)), Buffer.alloc(100_000)]));
}

function blobFile(digest: string): string {
  return join(project.blobFolder, digest.slice(0, 2), digest.slice(2));
}

function isThere(name: string, digest: string): boolean {
  const ledger = openSqliteLedger(project.runFolder(name), { mode: "read", blobFolder: project.blobFolder });
  try {
    return ledger.hasBlob(digest);
  } finally {
    ledger.close();
  }
}

function gc(remove: boolean, more: { cacheOlderThanMs?: number; youngMs?: number } = {}): Promise<GarbageReport> {
  return collectGarbage(project, host, { remove, cacheOlderThanMs: null, youngMs: -1, ...more });
}

function items(report: GarbageReport, kind: GarbageKind): number {
  return report.kinds.find((each) => each.kind === kind)?.items ?? 0;
}

test("with keep_outputs: best, outputs of the best and the baseline stay, the others go, and the ledger says so", async () => {
  await finishedRun("r");
  const run = inspectRun(project, "r");
  expect([run.state.trials["t1"]?.status, run.state.trials["t2"]?.status, run.state.leader?.trial]).toEqual(["keep", "discard", "t1"]);
  run.close();
  const said = await gc(false);
  expect([said.removed, items(said, "outputs"), items(said, "blobs")]).toEqual([false, 2, 0]);
  expect(said.kinds.find((each) => each.kind === "outputs")?.bytes).toBe(100_002);
  expect([isThere("r", large(5)), (await verifyRun(project, "r")).ok]).toEqual([true, true]);
  expect(items(await gc(true), "outputs")).toBe(2);
  expect([1, 9, 5].map((score) => [isThere("r", large(score)), isThere("r", digestOf(String(score)))])).toEqual([
    [true, true],
    [true, true],
    [false, false],
  ]);
  expect(await verifyRun(project, "r")).toMatchObject({ ok: true, problem: null });
  const again = await gc(true);
  expect(again.kinds.every((each) => each.items === 0)).toBe(true);
});

test("what another run of the project still needs stays, and nothing goes with keep_outputs: all", async () => {
  await finishedRun("best");
  await finishedRun("all", "all");
  expect(items(await gc(true), "outputs")).toBe(1);
  expect([isThere("all", large(5)), isThere("all", digestOf("5")), existsSync(blobFile(large(5)))]).toEqual([true, true, true]);
  for (const name of ["best", "all"]) expect(await verifyRun(project, name)).toMatchObject({ ok: true });
});

test("ended between the record and the removal, the next one removes the rest", async () => {
  await finishedRun("r");
  const digests = [large(5), digestOf("5")];
  await operate(project, "r", { type: "prune_blobs", digests, reason: "a test" });
  expect(isThere("r", digestOf("5"))).toBe(true);
  const report = await gc(true);
  expect([items(report, "outputs"), items(report, "blobs")]).toEqual([1, 1]);
  expect(digests.map((digest) => isThere("r", digest))).toEqual([false, false]);
  expect((await verifyRun(project, "r")).ok).toBe(true);
});

test("no candidate, record or printed output is pruned, whoever asks", async () => {
  await finishedRun("r");
  const run = inspectRun(project, "r");
  const { candidate } = run.state.trials["t1"] ?? { candidate: { blob: "" } };
  run.close();
  const asked = operate(project, "r", { type: "prune_blobs", digests: [candidate.blob], reason: "a test" });
  await expect(asked).rejects.toThrow(/expected blobs of kept outputs alone/);
});

test("a blob that is named again after it was pruned has to be there", async () => {
  await finishedRun("r");
  await gc(true);
  const ledger = openSqliteLedger(project.runFolder("r"), { mode: "own", blobFolder: project.blobFolder });
  const content = { blob: ledger.putBlob(Buffer.from("5")), bytes: 1 };
  const data = { kind: "note", version: 1, key: "k", sources: [], content };
  ledger.append(ledger.head, Date.now(), [{ type: "knowledge.committed", version: 1, data }]);
  ledger.close();
  expect((await verifyRun(project, "r")).ok).toBe(true);
  expect(items(await gc(true), "outputs")).toBe(0);
  expect(isThere("r", digestOf("5"))).toBe(true);
});

test("files that no ledger names go when they are old; one that is stored anew is young again", async () => {
  await finishedRun("r", "none");
  const bytes = Buffer.alloc(70_000, 7);
  const ledger = openSqliteLedger(project.runFolder("r"), { mode: "own", blobFolder: project.blobFolder });
  const digest = ledger.putBlob(bytes);
  const long = new Date(Date.now() - 3_600_000);
  utimesSync(blobFile(digest), long, long);
  expect(items(await gc(false, { youngMs: 60_000 }), "blobs")).toBe(1);
  ledger.putBlob(bytes);
  ledger.close();
  const left = await gc(true, { youngMs: 60_000 });
  expect([items(left, "blobs"), left.notes.join(" "), existsSync(blobFile(digest))]).toEqual([
    0,
    expect.stringContaining("too young"),
    true,
  ]);
  expect(items(await gc(true), "blobs")).toBe(1);
  expect(existsSync(blobFile(digest))).toBe(false);
});

test("beside a run that is worked on, and beside one that cannot be read, nothing of theirs goes", async () => {
  await finishedRun("r");
  const ledger = openSqliteLedger(project.runFolder("r"), { mode: "own", blobFolder: project.blobFolder });
  const beside = await gc(true);
  ledger.close();
  expect([items(beside, "outputs"), items(beside, "blobs"), beside.notes.join(" ")]).toEqual([
    0,
    0,
    expect.stringContaining("r is being worked on"),
  ]);
  mkdirSync(project.runFolder("broken"), { recursive: true });
  writeFileSync(join(project.runFolder("broken"), "ledger.sqlite"), "no database\n".repeat(200));
  const orphan = join(project.blobFolder, "ab", "c".repeat(62));
  mkdirSync(join(project.blobFolder, "ab"), { recursive: true });
  writeFileSync(orphan, "x");
  const report = await gc(true);
  expect([items(report, "blobs"), existsSync(orphan), report.notes.join(" ")]).toEqual([
    0,
    true,
    expect.stringContaining("broken cannot be read"),
  ]);
  expect((await verifyRun(project, "r")).ok).toBe(true);
});

test("folders of runs that are over, leftovers and, when asked for, what nothing used for long in the cache", async () => {
  await finishedRun("r");
  // Its supervisor ends a little later, and keeps its folders until then.
  expect(await lab.leftovers()).toEqual([]);
  const key = runKey(project.runFolder("r"));
  const long = new Date(Date.now() - 90 * 86_400_000);
  const made = {
    scratch: host.cache.folder("scratch", key),
    unknownScratch: host.cache.folder("scratch", "f".repeat(24)),
    partial: host.cache.folder("environments", "x.0123.partial"),
    freshPartial: host.cache.folder("environments", "y.0123.partial"),
    unused: host.cache.folder("environments", "e".repeat(64)),
    import: join(project.root, "runs", ".import-1-abc"),
    fork: join(project.root, "runs", ".fork-1-abc"),
  };
  for (const folder of Object.values(made)) mkdirSync(folder, { recursive: true });
  for (const folder of [made.unknownScratch, made.partial, made.unused, made.import, made.fork]) utimesSync(folder, long, long);
  const used = readdirSync(host.cache.folder("environments", "")).filter((name) => /^[0-9a-f]{64}$/.test(name) && name !== "e".repeat(64));
  for (const name of used) utimesSync(host.cache.folder("environments", name), long, long);
  const exists = (): Record<string, boolean> =>
    Object.fromEntries(Object.entries(made).map(([name, folder]) => [name, lstatSync(folder, { throwIfNoEntry: false }) !== undefined]));
  await gc(true);
  expect(exists()).toEqual({
    scratch: false,
    unknownScratch: true,
    partial: false,
    freshPartial: true,
    unused: true,
    import: false,
    fork: false,
  });
  await gc(true, { cacheOlderThanMs: 30 * 86_400_000 });
  expect(exists()).toEqual({
    scratch: false,
    unknownScratch: false,
    partial: false,
    freshPartial: true,
    unused: false,
    import: false,
    fork: false,
  });
  for (const name of used) expect(existsSync(host.cache.folder("environments", name))).toBe(true);
});

test("a fork that begins before outputs were removed says itself that they are gone, and checks out", async () => {
  await finishedRun("run");
  await gc(true);
  const inherited = { stop: {}, researchers: null, seed: null, parallel: null, frozen: false, afterHeldoutLook: null };
  const request = { ...inherited, name: "fork", at: "t2", reason: "the test forks", caps: { trials: { more: 1 } } };
  await forkRun(project, host, "run", request);
  expect(await verifyRun(project, "fork")).toMatchObject({ ok: true, problem: null });
  const { ledger, close } = inspectRun(project, "fork");
  const pruned = [...ledger.read()].flatMap(({ type, data }) =>
    type === "run.blobs_pruned" ? (data as { digests: string[] }).digests : [],
  );
  close();
  // The small and the large one of the trial that was not kept.
  expect(pruned).toHaveLength(2);
});

test("folders of a run that is over stay once it was extended", async () => {
  await finishedRun("run");
  expect(await lab.leftovers()).toEqual([]);
  mkdirSync(host.cache.folder("scratch", runKey(project.existingRun("run"))), { recursive: true });
  expect(items(await gc(false), "folders")).toBeGreaterThan(0);
  const request = { caps: { trials: { more: 1 } }, stop: {}, reason: "the test wants more", frozen: false, afterHeldoutLook: null };
  await extendRun(project, host, "run", request);
  expect(items(await gc(false), "folders")).toBe(0);
});
