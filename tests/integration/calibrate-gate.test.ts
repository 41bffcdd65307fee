import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freezeFolder, openHost } from "../../src/app/environments.js";
import { inspectRun } from "../../src/app/inspect.js";
import { knownGate } from "../../src/app/known-gate.js";
import { Project } from "../../src/app/project.js";
import { verifyRun } from "../../src/app/verify.js";
import { configurationOf } from "../../src/core/harness/state.js";
import { parseEvent } from "../../src/core/protocol/events.js";
import type { Gate } from "../../src/core/protocol/gate.js";
import { commandLine, type Ended } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, proposes, scoring } from "../support/lab.js";
import { recordPack } from "../support/record-pack.js";

/** Real copies in real sandboxes. What draws does so from the kernel, so that no seed makes two copies alike. */
const noisy = { "main.sh": `echo $((1000 + $(od -An -N2 -tu2 /dev/urandom) % 100)) > $TRIALIST_OUTPUT/out.txt\n` };

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

function pack(baseline: Readonly<Record<string, string>>): void {
  lab.write({ ...numberPack({ seed: 1, words: [proposes(scoring(1100))] }), "baseline/main.sh": baseline["main.sh"] ?? "" });
}

function calibrate(...more: string[]): ReturnType<typeof commandLine> {
  return commandLine(lab, "calibrate", lab.pack, "--yes", "--json", ...more);
}

function gateIn({ code, stdout, stderr }: Ended): Gate {
  if (code !== 0) throw new Error(`calibrate ended with ${code}: ${stderr}`);
  return (JSON.parse(stdout) as { gate: Gate }).gate;
}

async function started(...more: string[]): Promise<{ readonly stderr: string; readonly gate: Gate | null; readonly text: string }> {
  const ended = await commandLine(lab, "run", lab.pack, "--researcher", "command:sh answer.sh", "--max-trials", "1", ...more).ended;
  expect(ended.code, ended.stderr).toBe(0);
  const project = new Project(lab.project);
  const name =
    project
      .runNames()
      .filter((each) => !each.startsWith("calibrate"))
      .at(-1) ?? "";
  const { state, close } = inspectRun(project, name);
  close();
  return { stderr: ended.stderr, gate: state.configuration?.gate ?? null, text: ended.stdout };
}

describe("copies of the baseline under the rule in force", () => {
  it("give the rate of false keeps, which then stands beside the verdicts of runs that start", async () => {
    pack(noisy);
    expect((await started()).text).toContain("never measured here: `trialist calibrate ENVIRONMENT --aa 40`");
    const gate = gateIn(await calibrate("--aa", "10").ended);
    expect(gate.copies).toMatchObject({ kept: { of: 10 }, identical: false });
    expect(gate.copies.confirmed.hits).toBe(gate.copies.kept.hits);
    // Copies that differ speak for themselves: gains are put into what they measured.
    expect(gate.resampled).toBeNull();
    // Where by chance none looked better at first, there are no pairs, and values of different seeds stand in.
    const [from] = gate.planted.map((each) => each.from);
    const looks = gate.copies.confirmed.of === 0 ? { from: "seeds", of: 2000 } : { from: "pairs", of: 10 };
    expect({ from, of: gate.planted[0]?.kept.of }).toEqual(looks);
    expect(gate.planted).toHaveLength(3);
    const after = await started();
    expect(after.gate).toEqual(gate);
    expect(after.text.replaceAll(/\s+/g, " ")).toContain(`false keeps of this rule here: ${gate.copies.kept.hits} of 10 copies`);
    // Another rule is another question.
    const other = await commandLine(lab, "run", lab.pack, "--researcher", "command:sh answer.sh", "--max-trials", "1", "--rule", "any")
      .ended;
    expect(other.stdout).toContain("never measured here");
  });

  it("go on where they were killed, and are not measured twice", async () => {
    pack(noisy);
    const first = calibrate("--aa", "10");
    let said = "";
    for await (const [text] of on(first.child.stderr)) {
      said += String(text);
      if (/^t3 /m.test(said)) break;
    }
    first.child.kill("SIGKILL");
    await first.ended;
    const gate = gateIn(await calibrate("--aa", "10").ended);
    expect(gate.copies.kept.of).toBe(10);
    const project = new Project(lab.project);
    const { ledger, close } = inspectRun(project, gate.run);
    const admitted = of([...ledger.read()].map(parseEvent), "trial.admitted").filter(({ data }) => data.kind === "search");
    close();
    expect(admitted).toHaveLength(10);
    expect(await verifyRun(project, gate.run)).toMatchObject({ ok: true });
    // Once more: nothing is left to measure.
    const again = await calibrate("--aa", "10").ended;
    expect(gateIn(again)).toEqual(gate);
    expect(again.stderr).toBe("");
  });

  it("that measure the same on equal seeds are said to show nothing", async () => {
    pack(scoring(100));
    const ended = await commandLine(lab, "calibrate", lab.pack, "--yes", "--aa", "3").ended;
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stdout).toContain("Identical copies measure the same here");
    expect(gateIn(await calibrate("--aa", "3").ended).copies).toMatchObject({ kept: { hits: 0, of: 3 }, identical: true });
  });

  it("are asked for, and nothing is made when nobody answers or the name is another run's", async () => {
    pack(scoring(100));
    const silent = await commandLine(lab, "calibrate", lab.pack, "--aa", "3").ended;
    expect(silent).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes") });
    expect(new Project(lab.project).runNames()).toEqual([]);
    await calibrate("--aa", "2", "--name", "mine").ended;
    const other = await calibrate("--aa", "3", "--name", "mine").ended;
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("measures something else") });
    const unboxed = await calibrate("--aa", "2", "--name", "mine", "--sandbox", "none").ended;
    expect(unboxed).toMatchObject({ code: 2, stderr: expect.stringContaining("measures something else") });
    // Neighbours change no number that is not a time.
    expect(gateIn(await calibrate("--aa", "2", "--name", "mine", "--parallel", "2").ended).run).toBe("mine");
  });

  it("count beside as many others as they were measured with, where a clock is read", async () => {
    pack(scoring(100));
    const contract = readFileSync(join(lab.pack, "environment.yaml"), "utf8");
    const timed = "metrics: [{ name: score, direction: maximize }, { name: seconds, direction: minimize, from: { wall: train } }]";
    lab.write({ "environment.yaml": contract.replace(/^metrics: .*$/m, timed) });
    const alone = gateIn(await calibrate("--aa", "2").ended);
    const together = gateIn(await calibrate("--aa", "2", "--parallel", "2").ended);
    expect(together.run).not.toBe(alone.run);
    const other = await calibrate("--aa", "2", "--parallel", "2", "--name", alone.run).ended;
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("measures something else") });
    expect([(await started()).gate?.run, (await started("--parallel", "2")).gate?.run]).toEqual([alone.run, together.run]);
    expect((await started("--parallel", "3")).gate).toBeNull();
  });
});

describe("what copies cannot show", () => {
  it("is drawn from real records, and planted gains are found the oftener the larger they are", async () => {
    lab.write(recordPack(true));
    const gate = gateIn(await calibrate("--aa", "2").ended);
    expect(gate.copies).toMatchObject({ kept: { hits: 0, of: 2 }, identical: true });
    expect(gate.resampled).toMatchObject({ from: "reference", records: 40, kept: { of: 2000 } });
    expect((gate.resampled?.kept.hits ?? 0) / 2000).toBeLessThan(0.1);
    expect(gate.planted.map(({ from }) => from)).toEqual(["reference", "reference", "reference"]);
    const found = gate.planted.map(({ kept }) => kept.hits);
    expect(found).toEqual([...found].sort((a, b) => a - b));
    // A gain of the smallest visible size is seen about half of the time.
    expect((found[1] ?? 0) / 2000).toBeCloseTo(0.5, 0);
    const own = gateIn(await calibrate("--aa", "2", "--planted", "1000").ended);
    expect(own.planted).toMatchObject([{ gain: 1000, kept: { hits: 2000, of: 2000 } }]);
    const text = (await commandLine(lab, "calibrate", lab.pack, "--yes", "--aa", "2").ended).stdout;
    expect(text).toContain("Resampled, simulated from real records of the baseline and a reference row (40 records)");
  });

  it("is not made up where there is nothing to draw from", async () => {
    lab.write(recordPack(false));
    const ended = await commandLine(lab, "calibrate", lab.pack, "--yes", "--aa", "2").ended;
    expect(ended.stdout).toContain("There is nothing to draw from either");
    expect(gateIn(await calibrate("--aa", "2").ended)).toMatchObject({ resampled: null, planted: [], copies: { identical: true } });
  });

  it("is drawn from values of different seeds where there are no records", async () => {
    pack(scoring(100));
    expect(gateIn(await calibrate("--aa", "3", "--planted", "5000").ended)).toMatchObject({
      resampled: { from: "seeds", records: 0 },
      planted: [{ from: "seeds", kept: { hits: 2000, of: 2000 } }],
    });
  });
});

describe("what is kept of a rule's errors", () => {
  it("holds for what it was measured on alone: rule, sandbox, machine and GPUs, what lies around", async () => {
    const data = join(lab.folder, "data");
    mkdirSync(data);
    writeFileSync(join(data, "words.txt"), "one");
    pack(scoring(100));
    const contract = readFileSync(join(lab.pack, "environment.yaml"), "utf8");
    lab.write({ "environment.yaml": `${contract}mounts: [{ source: ${data}, target: /data }]\n` });
    const { run } = gateIn(await calibrate("--aa", "2").ended);
    const inspected = inspectRun(new Project(lab.project), run);
    inspected.close();
    const subject = configurationOf(inspected.state);
    const host = await openHost(lab.variables);
    const { frozen } = await freezeFolder(host, lab.pack);
    const known = (changes: Partial<typeof subject>) => knownGate(host, frozen, { ...subject, ...changes }, () => undefined);
    expect(await known({ seed: 9, parallel: 8, host: { ...subject.host, memoryBytes: 1 } })).toMatchObject({ run });
    expect(await known({ sandbox: "none" })).toBeNull();
    expect(await known({ host: { ...subject.host, cpus: 99 } })).toBeNull();
    expect(await known({ host: { ...subject.host, gpus: ["a card"] } })).toBeNull();
    expect(await known({ promotion: { ...subject.promotion, confirmations: 5 } })).toBeNull();
    writeFileSync(join(data, "words.txt"), "another");
    expect(await known({})).toBeNull();
  });

  function keptFile(): string {
    const folder = join(lab.cache, "calibrations");
    return join(folder, readdirSync(folder).find((name) => name.startsWith("gate-")) ?? "missing");
  }

  it("is left aside with a note when it is no such thing, and the run starts all the same", async () => {
    pack(noisy);
    const gate = gateIn(await calibrate("--aa", "2").ended);
    const file = keptFile();
    const good = readFileSync(file, "utf8");
    const hostile = [
      "",
      "no JSON \u001b[31m",
      JSON.stringify({
        ...JSON.parse(good),
        value: { ...gate, copies: { ...gate.copies, kept: { hits: -1, of: 2, lower: 0, upper: 1 } } },
      }),
      JSON.stringify({ ...JSON.parse(good), key: { kind: "gate", environmentDigest: "another" } }),
      JSON.stringify({ ...JSON.parse(good), value: { ...gate, surprise: 1 } }),
    ];
    for (const text of hostile) {
      writeFileSync(file, text);
      const { gate: found, stderr } = await started();
      expect(found, text).toBeNull();
      expect(stderr).toContain("is left aside");
      expect(stderr).not.toContain("\u001b[31m");
    }
    unlinkSync(file);
    writeFileSync(join(lab.folder, "elsewhere.json"), good);
    symlinkSync(join(lab.folder, "elsewhere.json"), file);
    expect((await started()).gate).toBeNull();
    unlinkSync(file);
    mkdirSync(file);
    expect((await started()).gate).toBeNull();
  });
});

/** What a stream says, piece by piece; ends with it. */
async function* on(stream: import("node:stream").Readable | null): AsyncGenerator<[unknown]> {
  if (stream === null) return;
  for (;;) yield (await once(stream, "data")) as [unknown];
}
