import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { digestOf } from "../../src/core/protocol/canonical.js";
import { type Packet, packet } from "../../src/core/protocol/packet.js";
import { commandLine, commandLineWith, drive, driven } from "../support/drive.js";
import { Lab, proposes } from "../support/lab.js";
import { entriesOf, predict, predictionPacks } from "../support/packets.js";

/** One trial as one archive: what is in it, what is never in it, and that it is the same to the byte. */
const seed = 11;
const lab = new Lab();
afterAll(() => lab.remove());

const hypothesis = "predict <img src=x> lower | \u202ebetter";

beforeAll(async () => {
  lab.write(
    predictionPacks(seed, [
      proposes({ "main.sh": predict(400), "parts/new.sh": "echo new\n" }, hypothesis),
      proposes({ "main.sh": "exit 3\n" }),
    ]),
  );
  const budget = { trials: 2, costUsd: null, tokens: null, computeMs: null, wallMs: null };
  const request = { seed, budget, organization: { name: "tree", configuration: { drafts: 50 } } };
  for (const name of ["brought", "prepared"])
    await driven(lab, [
      { do: "create", name, request: { ...request, environmentFolder: join(lab.pack, name) } },
      { do: "work", name },
    ]);
  await driven(lab, [{ do: "create", name: "young", request: { ...request, environmentFolder: join(lab.pack, "brought") } }]);
  for (let look = 0; look < 2; look++) expect((await commandLine(lab, "heldout", "brought").ended).code).toBe(0);
}, 120_000);

async function pack(run: string, name: string, ...words: string[]) {
  const file = join(lab.folder, name);
  const { code, stdout, stderr } = await commandLine(lab, "pack", run, "--out", file, "--json", ...words).ended;
  expect([code, stderr]).toEqual([0, words.includes("--with-data") ? expect.stringMatching(/^WARNING: it holds labels/) : ""]);
  const entries = new Map(entriesOf(file).map(({ path, bytes }) => [path, bytes]));
  const claims = packet.parse(JSON.parse((entries.get("packet/packet.json") ?? Buffer.alloc(0)).toString("utf8")));
  return { file, entries, claims, answer: JSON.parse(stdout) as { digest: string; leftOut: Packet["leftOut"] } };
}

describe("pack", () => {
  it("of a run that is finishing and that nobody works on names what brings it to its end", async () => {
    const environmentFolder = join(lab.pack, "brought");
    const budget = { trials: 2, costUsd: null, tokens: null, computeMs: null, wallMs: null };
    await drive(lab, [
      { do: "create", name: "left", request: { seed, budget, environmentFolder } },
      { do: "work", name: "left", death: { side: "after", append: 14 } },
    ]).ended;
    const said = async (...words: string[]) => (await commandLine(lab, ...words).ended).stderr;
    expect(await said("pack", "left")).toMatch(/which is searching\. `trialist finish left --reason …` ends it/);
    expect(await said("finish", "left", "--reason", "enough")).toBe("");
    expect(await said("pack", "left")).toMatch(/which is finishing\. `trialist resume left` brings it to its end/);
    expect(await said("heldout", "left")).toMatch(/which is finishing\..*`trialist resume left` brings it to its end/);
  });

  it("holds what somebody else needs, each file named with its digest, and no label", async () => {
    const { entries, claims, answer } = await pack("brought", "plain.tar.gz");
    expect([...entries.keys()]).toEqual([
      "packet/README.md",
      "packet/baseline/main.sh",
      "packet/baseline/parts/old \u00e9.sh",
      "packet/candidate/main.sh",
      "packet/candidate/parts/new.sh",
      "packet/candidate/parts/old \u00e9.sh",
      "packet/data/public/ids.txt",
      ...[...entries.keys()].filter((path) => path.startsWith("packet/environment/")),
      "packet/packet.json",
    ]);
    expect([...entries.keys()]).toEqual(
      expect.arrayContaining(["packet/environment/inventory.json", "packet/environment/pack/evaluate.sh"]),
    );
    expect(entries.get("packet/candidate/main.sh")?.toString()).toBe(predict(400));
    expect(digestOf(entries.get("packet/environment/inventory.json") ?? "")).toBe(claims.environment.digest);
    const named = Object.fromEntries(claims.files.map(({ path, digest }) => [`packet/${path}`, digest]));
    const found = Object.fromEntries(
      [...entries].filter(([path]) => path !== "packet/packet.json").map(([path, bytes]) => [path, digestOf(bytes)]),
    );
    expect(found).toEqual(named);
    expect(answer.digest).toBe(digestOf(entries.get("packet/packet.json") ?? ""));
    expect(answer.leftOut.map(({ what }) => what)).toEqual(
      expect.arrayContaining(["in-loop data (labels)", "held-out data", "the ledger", "per-record results and outputs"]),
    );
  });

  it("claims what the run recorded: seeds, values, verdict, looks, spend, ledger", async () => {
    const { claims } = await pack("brought", "claims.tar.gz");
    const verified = JSON.parse((await commandLine(lab, "verify", "brought", "--json").ended).stdout) as {
      chain: string;
      events: number;
    }[];
    expect(claims).toMatchObject({
      schema: "trialist/packet@1",
      run: "brought",
      trial: { id: "t1", status: "keep", hypothesis, selfReported: false, retracted: false, restsOnRetracted: [] },
      comparator: "t0",
      verdict: { result: "improved", gain: 500 },
      gainOverBaseline: expect.any(Number),
      heldoutLooks: 2,
      spend: { trials: 2, searched: 2 },
      ledger: { chain: verified[0]?.chain, events: verified[0]?.events },
      data: { public: { included: true, files: 1 }, inloop: { included: false, files: 1 } },
    });
    expect(claims.seeds.confirmations).toHaveLength(2);
    expect(claims.measurements.map(({ subject, reason, pair }) => [subject, reason, pair])).toEqual([
      ["candidate", "first", 0],
      ["baseline", "calibration", 0],
      ["baseline", "calibration", 1],
      ["candidate", "confirmation", 0],
      ["candidate", "confirmation", 1],
      ["comparator", "confirmation", 0],
      ["comparator", "confirmation", 1],
    ]);
  });

  it.each(["brought", "prepared"])("tells no label, no path of this machine and no answer of a look of %s", async (run) => {
    const { entries } = await pack(run, `quiet-${run}.tar.gz`);
    for (const [path, bytes] of entries) {
      const text = bytes.toString("utf8");
      expect([path, text.includes(lab.folder)]).toEqual([path, false]);
      // A preparation that makes labels is a file of the environment: whoever hides them so has published them.
      if (!path.endsWith("prepare.sh")) expect([path, /a,100|c,7120|7120/.test(text)]).toEqual([path, false]);
      expect([path, /canary|heldout\//.test(path)]).toEqual([path, false]);
    }
    expect(entries.get("packet/README.md")?.toString()).not.toMatch(/<img|\u202e/);
  });

  it.each(["brought", "prepared"])("holds the labels of %s when asked, and never the held-out ones nor a canary", async (run) => {
    const { entries, claims } = await pack(run, `data-${run}.tar.gz`, "--with-data");
    expect(entries.get("packet/data/inloop/labels.csv")?.toString()).toBe("a,100\nb,110\n");
    expect(entries.get("packet/data/public/ids.txt")?.toString()).toBe("a\nb\nc\nd\n");
    expect([...entries.keys()].filter((path) => /heldout|canary/.test(path))).toEqual([]);
    expect(claims.data).toMatchObject({ public: { included: true }, inloop: { included: true } });
  });

  it("leaves out what a preparation makes again", async () => {
    const { entries, answer } = await pack("prepared", "again.tar.gz");
    expect([...entries.keys()].filter((path) => path.startsWith("packet/data/"))).toEqual([]);
    expect(answer.leftOut).toEqual(expect.arrayContaining([{ what: "public data", why: expect.stringMatching(/makes it again/) }]));
  });

  it("is the same to the byte, whenever it is made", async () => {
    const first = await pack("brought", "one.tar.gz");
    utimesSync(join(lab.pack, "brought/evaluate.sh"), 0, 0);
    const second = await pack("brought", "two.tar.gz");
    expect(digestOf(readFileSync(second.file))).toBe(digestOf(readFileSync(first.file)));
  });

  it("lies beside the runs where no place is named, and leaves the environment's folder as it was", async () => {
    const folder = join(lab.pack, "brought");
    const files = readdirSync(folder, { recursive: true });
    const { code, stdout, stderr } = await commandLine(lab, "pack", "brought").ended;
    const file = join(lab.project, ".trialist/packets/brought-t1.tar.gz");
    expect([code, stderr, stdout]).toEqual([0, "", expect.stringContaining(`${file}: t1, `)]);
    expect(entriesOf(file).length).toBeGreaterThan(5);
    expect(readdirSync(folder, { recursive: true })).toEqual(files);
    const again = await commandLine(lab, "pack", "brought").ended;
    expect([again.code, again.stderr]).toEqual([2, expect.stringMatching(/a path for a new file.*Choose another --out/s)]);
  });

  it("holds the ledger when asked, and it can be imported", async () => {
    const { entries } = await pack("brought", "ledger.tar.gz", "--with-ledger");
    const elsewhere = join(lab.folder, "elsewhere");
    mkdirSync(elsewhere);
    writeFileSync(join(elsewhere, "ledger.jsonl"), entries.get("packet/ledger.jsonl") ?? "");
    const { code, stderr } = await commandLine(lab, "import", join(elsewhere, "ledger.jsonl"), "--name", "again", "-C", elsewhere).ended;
    expect([code, stderr]).toEqual([0, ""]);
  });

  it("refuses a run that goes on, a trial without a value, the baseline, a file that is there, and a known secret", async () => {
    const said = async (...words: string[]) => {
      const { code, stderr } = await commandLine(lab, "pack", ...words).ended;
      return [code, stderr];
    };
    expect(await said("young")).toEqual([2, expect.stringMatching(/a run that is over.*which is calibrating/s)]);
    expect(await said("brought", "--trial", "t2")).toEqual([2, expect.stringMatching(/a trial that was measured.*t2, crashed/s)]);
    expect(await said("brought", "--trial", "t0")).toEqual([2, expect.stringMatching(/t0, the baseline/)]);
    expect(await said("brought", "--trial", "t9")).toEqual([2, expect.stringMatching(/a trial of this run; found t9/)]);
    const taken = join(lab.folder, "taken.tar.gz");
    writeFileSync(taken, "mine\n");
    expect(await said("brought", "--out", taken)).toEqual([2, expect.stringMatching(/a path for a new file/)]);
    expect(readFileSync(taken, "utf8")).toBe("mine\n");
    const leaky = join(lab.folder, "leaky.tar.gz");
    const harmless = await commandLineWith(lab, { MY_TOKEN: "something-else" }, "pack", "brought", "--out", leaky).ended;
    expect([harmless.code, harmless.stderr, existsSync(leaky)]).toEqual([0, "", true]);
    const secret = await commandLineWith(lab, { MY_TOKEN: "TRIALIST_ARTIFACTS/predictions.csv" }, "pack", "brought", "--out", `${leaky}2`)
      .ended;
    expect([secret.code, secret.stderr, existsSync(`${leaky}2`)]).toEqual([
      2,
      expect.stringMatching(/one of them in environment\/pack\/evaluate\.sh/),
      false,
    ]);
    expect(lab.scratch().filter((name) => name.includes("-pack-"))).toEqual([]);
  });
});
