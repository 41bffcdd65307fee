import { mkdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { truncate } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DigestMemory } from "../../src/adapters/environments/digest-memory.js";
import { digestFile } from "../../src/adapters/environments/file-digest.js";
import { listFolder } from "../../src/adapters/environments/folder-files.js";
import { loadEnvironment } from "../../src/adapters/environments/load.js";
import { digestMount } from "../../src/adapters/environments/mount-digest.js";
import { fingerprintPrefix } from "../../src/adapters/environments/prefix-fingerprint.js";
import { openSqliteLedger } from "../../src/adapters/ledger/sqlite-ledger.js";
import { createRun } from "../../src/app/create-run.js";
import { type Host, openHost } from "../../src/app/environments.js";
import { type OwnedRun, ownRun } from "../../src/app/own-run.js";
import { Project } from "../../src/app/project.js";
import { digestOfValue } from "../../src/core/protocol/canonical.js";
import { Lab } from "../support/lab.js";
import { contractWith, fill, makePack, temporaryCache, temporaryFolder } from "./environment-fixture.js";

describe("a run whose surroundings change", () => {
  let lab: Lab;
  let host: Host;
  beforeEach(async () => {
    lab = new Lab();
    host = await openHost(lab.variables);
  });
  afterEach(() => lab.remove());

  /** Candidates wait at the gate, so that a test can change things while one runs. */
  async function start(surroundings: string): Promise<Project> {
    lab.write({
      "environment.yaml": `schema: trialist/environment@1
name: surrounded
surface: { editable: [main.sh] }
${surroundings}
stages: [{ name: train, run: sh main.sh, limits: { wall: 1 min } }]
metrics: [{ name: score, direction: maximize, from: { stdout: "score (.*)", stage: train } }]
noise: { calibrate: 2, remeasure_every: 0 }
promotion: { rule: any }
`,
      "baseline/main.sh": "until [ -e /gate/go ]; do sleep 0.05; done; echo score $((TRIALIST_SEED % 7))\n",
      "propose.sh": `cat > /dev/null; printf '{"plan":{"hypothesis":"h"},"files":{"main.sh":"echo score 9\\\\n"}}'\n`,
    });
    const project = new Project(lab.project);
    await createRun(project, host, {
      environmentFolder: lab.pack,
      name: "r",
      organization: { name: "tree", configuration: {} },
      researcher: "command:sh propose.sh",
      budget: { trials: 1, costUsd: null, tokens: null, computeMs: null, wallMs: null },
      promotion: {},
      seed: 1,
      parallel: 1,
      sandbox: "bubblewrap",
    });
    return project;
  }

  function own(project: Project, frozen = false): Promise<OwnedRun> {
    return ownRun(project, host, "r", { frozen, progress: () => undefined });
  }

  /** Works until the first stage runs, changes something, lets the stage end, and waits for the run to stop. */
  async function changeMeanwhile(owned: OwnedRun, change: () => void): Promise<void> {
    const working = owned.runner.work();
    while (owned.run.state.measurements["m1"]?.startedStage == null) await sleep(20);
    change();
    lab.open("go");
    await working;
    await owned.close();
  }

  async function finish(owned: OwnedRun): Promise<string> {
    owned.run.dispatch({ type: "resume", reason: "a test" });
    await owned.runner.work();
    await owned.close();
    return owned.run.state.phase;
  }

  const gate = (): string => `{ source: ${lab.gate}, target: /gate, digest: none }`;

  test("suspends when a mount changes, blames no candidate, and goes on when it is back as it was", async () => {
    const data = join(lab.folder, "outside data");
    const file = join(data, "sub/values.csv");
    mkdirSync(join(data, "sub"), { recursive: true });
    writeFileSync(file, "1\n");
    const project = await start(`mounts: [${gate()}, { source: "${data}", target: /outside }]`);
    const before = statSync(file);
    const owned = await own(project);
    await changeMeanwhile(owned, () => writeFileSync(file, "2\n"));
    expect([owned.run.state.phase, owned.run.state.reason]).toEqual(["suspended", expect.stringContaining(`the mount ${data} changed`)]);
    expect(owned.run.state.todo).toMatch(/Bring it back as it was.*--frozen/);
    expect(owned.run.state.trials["t0"]?.results).toEqual([]);
    const results = [...readResults(project)];
    expect(results).toEqual(["interrupted"]);
    await expect(own(project)).rejects.toThrow(`other files in ${data}`);
    writeFileSync(file, "1\n");
    // In the same millisecond: a date would be rounded, now and then to the next one.
    utimesSync(file, before.atime, (Math.trunc(before.mtimeMs) + 0.5) / 1000);
    expect(await finish(await own(project))).toBe("finished");
  });

  test("suspends when a mount is gone; --frozen goes on with what a person accepted", async () => {
    const data = join(lab.folder, "data");
    mkdirSync(data);
    writeFileSync(join(data, "x"), "1\n");
    const project = await start(`mounts: [${gate()}, { source: ${data}, target: /outside, digest: manifest }]`);
    const owned = await own(project);
    await changeMeanwhile(owned, () => renameSync(data, `${data}.away`));
    expect(owned.run.state.reason).toBe(`the mount ${data} changed while the run went on: it is gone`);
    mkdirSync(data);
    writeFileSync(join(data, "y"), "another file\n");
    expect(await finish(await own(project, true))).toBe("finished");
  });

  test("suspends when a runtime prefix is upgraded, also between two owners", async () => {
    const prefix = join(lab.folder, "prefix");
    const packages = join(prefix, "lib/python3/site-packages");
    for (const folder of [join(prefix, "bin"), join(packages, "wise-1.0.dist-info")]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(packages, "wise-1.0.dist-info/RECORD"), "");
    const project = await start(`mounts: [${gate()}]\nruntime: { use: ${prefix} }`);
    const owned = await own(project);
    await changeMeanwhile(owned, () => {
      rmSync(join(packages, "wise-1.0.dist-info"), { recursive: true });
      mkdirSync(join(packages, "wise-1.1.dist-info"));
    });
    expect([owned.run.state.phase, owned.run.state.reason]).toEqual([
      "suspended",
      expect.stringContaining(`the runtime ${prefix} was changed`),
    ]);
    // Nobody put it back.
    expect(await finish(await own(project))).toBe("suspended");
    expect(await finish(await own(project, true))).toBe("finished");
  });

  function readResults(project: Project): string[] {
    const ledger = openSqliteLedger(project.runFolder("r"), { mode: "read", blobFolder: project.blobFolder });
    try {
      return [...ledger.read()]
        .filter((event) => event.type === "attempt.ended")
        .map((event) => (event.data as { result: { kind: string } }).result.kind);
    } finally {
      ledger.close();
    }
  }
});

describe("a mount's digest", () => {
  const awkward = {
    "a-b/x": "1",
    "a/b/c": "2",
    "a.txt": "3",
    "a/b.d": "4",
    "a/b-/y": "5",
    "ä/ü": "6",
    "z/.DS_Store": "no",
    "q/m.pyc": "no",
  };

  test("covers every entry in one order, and is what it ever was", async () => {
    const folder = await fill(await temporaryFolder(), awkward);
    for (const digest of ["full", "manifest", "stat"] as const) {
      const lines: unknown[] = [];
      for (const entry of await listFolder(folder, new Set())) {
        const path = join(folder, entry.path);
        if (digest === "full") lines.push([entry.path, (await digestFile(path)).digest]);
        else if (digest === "stat") lines.push([entry.path, entry.kind, entry.bytes, Math.trunc(statSync(path).mtimeMs)]);
        else lines.push([entry.path, entry.kind, entry.bytes]);
      }
      expect(await digestMount({ source: folder, target: "/m", digest })).toBe(digestOfValue({ target: "/m", digest, lines }));
    }
  });

  test("of a full one is read once, and anew where a file changed", async () => {
    const cache = await temporaryCache();
    const folder = await fill(await temporaryFolder(), { big: "x".repeat(1000), other: "y" });
    const mount = { source: folder, target: "/m", digest: "full" } as const;
    await sleep(2100);
    const first = await digestMount(mount, cache);
    // Proof that it was not read: its remembered digest is put wrong, and shows.
    const memory = DigestMemory.open(cache, folder);
    memory.remember(join(folder, "big"), "f".repeat(64));
    memory.close();
    expect(await digestMount(mount, cache)).not.toBe(first);
    writeFileSync(join(folder, "big"), "x".repeat(1000));
    expect(await digestMount(mount, cache)).toBe(first);
    writeFileSync(join(folder, "big"), `${"x".repeat(999)}y`);
    expect(await digestMount(mount, cache)).not.toBe(first);
  });

  test("of a sparse giant by names and sizes, or with times, reads nothing of it", async () => {
    const folder = await fill(await temporaryFolder(), { "weights.bin": "" });
    await truncate(join(folder, "weights.bin"), 500 * 2 ** 30);
    const [manifest, stat] = [
      await digestMount({ source: folder, target: "/m", digest: "manifest" }),
      await digestMount({ source: folder, target: "/m", digest: "stat" }),
    ];
    await truncate(join(folder, "weights.bin"), 501 * 2 ** 30);
    expect(await digestMount({ source: folder, target: "/m", digest: "manifest" })).not.toBe(manifest);
    expect(await digestMount({ source: folder, target: "/m", digest: "stat" })).not.toBe(stat);
  });

  test("a file at its top that git LFS has not fetched is named", async () => {
    const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12345\n";
    const source = await fill(await temporaryFolder(), { "model.safetensors": pointer, "short.txt": "version", "deep/other": pointer });
    const contract = `mounts: [{ source: ${source}, target: /m }]\nplaybook:`;
    const pack = await makePack({ "environment.yaml": contractWith(["playbook:", contract]) });
    expect((await loadEnvironment(pack)).notes).toEqual([
      `${source}: model.safetensors is a pointer of git LFS, not the content; \`git lfs pull\` there fetches it`,
    ]);
  });
});

test("a prefix is another one after an upgrade, and the same when programs ran from it", async () => {
  const prefix = await fill(await temporaryFolder(), {
    "pyvenv.cfg": "home = /usr/bin\n",
    "lib/python3.11/site-packages/wise/__init__.py": "1",
    "lib/python3.11/site-packages/wise-1.0.dist-info/RECORD": "a",
    "lib/python3.11/site-packages/single.py": "1",
    "lib/node_modules/tool/package.json": "{}",
  });
  const seen = new Set([fingerprintPrefix(prefix)]);
  await fill(prefix, {
    "lib/python3.11/site-packages/wise/__pycache__/x.pyc": "",
    "lib/python3.11/site-packages/__pycache__/single.pyc": "",
  });
  expect(seen.has(fingerprintPrefix(prefix))).toBe(true);
  for (const [path, text] of [
    ["pyvenv.cfg", "home = /usr/local/bin\n"],
    ["lib/python3.11/site-packages/wise-1.0.dist-info/RECORD", "another"],
    ["lib/python3.11/site-packages/single.py", "22"],
    ["lib/python3.11/site-packages/new.py", ""],
    ["lib/node_modules/tool/package.json", "{ }"],
  ] as const) {
    await fill(prefix, { [path]: text });
    expect(seen.has(fingerprintPrefix(prefix))).toBe(false);
    seen.add(fingerprintPrefix(prefix));
  }
});
