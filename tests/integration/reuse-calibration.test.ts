import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRun } from "../../src/app/create-run.js";
import { freezeFolder, openHost } from "../../src/app/environments.js";
import { inspectRun } from "../../src/app/inspect.js";
import { knownCalibration } from "../../src/app/known-calibration.js";
import { Project } from "../../src/app/project.js";
import { importRun } from "../../src/app/transfer.js";
import { verifyRun } from "../../src/app/verify.js";
import { trialOf } from "../../src/core/harness/state.js";
import { parseEvent, type StoredRunEvent } from "../../src/core/protocol/events.js";
import { commandLine, driven, type Ended } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, proposes, scoring } from "../support/lab.js";
import { recordPack } from "../support/record-pack.js";

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

const project = (): Project => new Project(lab.project);

function numbers(): void {
  lab.write(numberPack({ seed: 1, words: [proposes(scoring(1100)), proposes(scoring(1200))], calibrate: 3 }));
}

async function run(name: string, ...more: string[]): Promise<Ended> {
  const words = ["run", lab.pack, "--name", name, "--researcher", "command:sh answer.sh", "--max-trials", "1", ...more];
  const ended = await commandLine(lab, ...words).ended;
  expect(ended.code, ended.stderr).toBe(0);
  return ended;
}

function eventsOf(name: string): StoredRunEvent[] {
  const { ledger, close } = inspectRun(project(), name);
  const events = [...ledger.read()].map(parseEvent);
  close();
  return events;
}

function calibrations(name: string): number {
  return of(eventsOf(name), "measurement.requested").filter(({ data }) => data.reason === "calibration").length;
}

function keptFile(): string {
  const folder = join(lab.cache, "calibrations");
  return join(folder, readdirSync(folder).find((file) => file.startsWith("calibration-")) ?? "missing");
}

describe("the calibration of an earlier run", () => {
  it("is taken over by the command line: one look at the baseline instead of all repetitions, and it says so", async () => {
    numbers();
    await run("first");
    const ended = await run("second");
    expect([calibrations("first"), calibrations("second")]).toEqual([3, 0]);
    const [reused] = of(eventsOf("second"), "calibration.reused");
    expect(reused?.data.from).toMatchObject({ run: "first", host: { platform: process.platform } });
    expect(JSON.stringify(reused)).not.toContain(lab.folder);
    const noiseOf = (name: string): unknown => of(eventsOf(name), "run.calibrated")[0]?.data.noise;
    expect(noiseOf("second")).toEqual(noiseOf("first"));
    expect(of(eventsOf("second"), "measurement.requested")[0]?.data.reason).toBe("remeasurement");
    for (const text of [ended.stdout, ended.stderr])
      expect(text.replaceAll(/\s+/g, " ")).toMatch(/calibration of [\d-]+ [\d:]+ UTC reused, measured by first/);
    const report = await commandLine(lab, "report", "second").ended;
    expect(report.stdout).toContain("reused, measured by first");
  });

  it("leaves a run that is verified, replayed, decided otherwise, exported and imported as any other", async () => {
    lab.write({
      ...recordPack(true),
      "answer.sh": 'cat > /dev/null; cat <<\'END\'\n{"plan":{"hypothesis":"another factor"},"files":{"factor.txt":"9\\n"}}\nEND\n',
    });
    await run("first");
    await run("second");
    expect([calibrations("first"), calibrations("second")]).toEqual([2, 0]);
    // The second run's ledger has its records itself.
    rmSync(join(lab.cache, "calibrations"), { recursive: true });
    expect(await verifyRun(project(), "second")).toMatchObject({ ok: true, problem: null });
    for (const words of [
      ["replay", "second"],
      ["replay", "second", "--rule", "any"],
    ]) {
      const replayed = await commandLine(lab, ...words).ended;
      expect(replayed.code, replayed.stdout + replayed.stderr).toBe(0);
    }
    const file = join(lab.folder, "second.jsonl");
    expect((await commandLine(lab, "export", "second", "--out", file).ended).code).toBe(0);
    const elsewhere = new Project(join(lab.folder, "elsewhere"));
    mkdirSync(join(lab.folder, "elsewhere"));
    elsewhere.make();
    await importRun(elsewhere, file, "second");
    expect(await verifyRun(elsewhere, "second")).toMatchObject({ ok: true, problem: null });
  });

  it("is left where nobody wants it: --recalibrate, too old a one, another environment, a library's call", async () => {
    numbers();
    await run("first");
    await run("anew", "--recalibrate");
    await run("old", "--calibration-age", "1ms");
    expect([calibrations("anew"), calibrations("old")]).toEqual([3, 3]);
    const host = await openHost(lab.variables);
    const request = {
      environmentFolder: lab.pack,
      name: "library",
      organization: { name: "tree", configuration: {} },
      researcher: "command:sh answer.sh",
      budget: { trials: 1, costUsd: null, tokens: null, computeMs: null, wallMs: null },
      promotion: {},
      seed: 1,
      parallel: 1,
      sandbox: "bubblewrap" as const,
    };
    await createRun(project(), host, request);
    expect(calibrations("library")).toBe(3);
    lab.write({ "baseline/main.sh": scoring(101)["main.sh"] ?? "" });
    await run("changed");
    expect(calibrations("changed")).toBe(3);
  });

  it("of another machine, another sandbox, or from the future is none", async () => {
    numbers();
    await run("first");
    const host = await openHost(lab.variables);
    const { frozen } = await freezeFolder(host, lab.pack);
    const { state, close } = inspectRun(project(), "first");
    const subject = state.configuration;
    const baseline = trialOf(state, "t0").candidate.blob;
    close();
    if (subject === null) throw new Error("no run");
    const measuredAt = of(eventsOf("first"), "run.calibrated")[0]?.at ?? 0;
    const known = (changes: Partial<typeof subject>, now = measuredAt + 1, of = baseline): Promise<unknown> =>
      knownCalibration(host, frozen, { ...subject, ...changes }, { baseline: of, maxAgeMs: 1000, now, note: () => undefined });
    expect(await known({})).not.toBeNull();
    expect(await known({ host: { ...subject.host, memoryBytes: 1, versions: {} } })).not.toBeNull();
    expect(await known({ host: { ...subject.host, cpuModel: "another" } })).toBeNull();
    expect(await known({ host: { ...subject.host, cpus: 99 } })).toBeNull();
    expect(await known({ host: { ...subject.host, gpus: ["a card of its own"] } })).toBeNull();
    expect(await known({ sandbox: "none" })).toBeNull();
    expect(await known({}, measuredAt + 1001)).toBeNull();
    // What a gain is attributed with has the winner for its baseline, under the same environment.
    expect(await known({}, measuredAt + 1, "0".repeat(64))).toBeNull();
    expect(await known({}, measuredAt - 1)).toBeNull();
  });

  it("of other GPUs is none, and it says on which it was measured", async () => {
    const words = [proposes(scoring(1100)), proposes(scoring(1200))];
    const files = numberPack({ seed: 1, words, calibrate: 3, wall: "1 min" });
    lab.write({ ...files, "environment.yaml": (files["environment.yaml"] ?? "").replace("wall: 1 min", "wall: 1 min, gpus: 1") });
    // Files stand in for devices; the driver's own nodes come along.
    const deviceRoot = join(lab.folder, "machine");
    mkdirSync(join(deviceRoot, "dev"), { recursive: true });
    for (const node of ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"]) {
      writeFileSync(join(deviceRoot, "dev", node), "");
      chmodSync(join(deviceRoot, "dev", node), 0o666);
    }
    const measured = async (name: string, gpu: string): Promise<number> => {
      const budget = { trials: 1, costUsd: null, tokens: null, computeMs: null, wallMs: null };
      const request = { seed: 1, budget, reuseCalibration: { maxAgeMs: 3_600_000 } };
      const steps = [{ do: "create", name, request } as const, { do: "work", name } as const];
      await driven(lab, steps, { deviceRoot, variables: { ...lab.variables, TRIALIST_GPUS: gpu } });
      return calibrations(name);
    };
    expect([await measured("first", "0"), await measured("other", "1"), await measured("again", "0")]).toEqual([3, 3, 0]);
    expect(of(eventsOf("again"), "calibration.reused")[0]?.data.from).toMatchObject({ run: "first", host: { gpus: ["/dev/nvidia0"] } });
  });

  it("that is broken is left aside with a note", async () => {
    lab.write({
      ...recordPack(false),
      "answer.sh": 'cat > /dev/null; echo \'{"plan":{"hypothesis":"x"},"files":{"factor.txt":"9\\n"}}\'\n',
    });
    await run("first");
    const good = readFileSync(keptFile(), "utf8");
    const whole = JSON.parse(good) as {
      value: { calibration: { results: { records: { blob: string } }[] }; records: Record<string, string> };
    };
    const digest = whole.value.calibration.results[0]?.records.blob ?? "";
    const withRecords = (records: Record<string, string>): string => JSON.stringify({ ...whole, value: { ...whole.value, records } });
    const bad = [
      good.slice(0, good.length / 2),
      good.replace('"pair":0', '"pair":-1'),
      withRecords({}),
      withRecords({ [digest]: `${whole.value.records[digest] ?? ""} ` }),
    ];
    for (const [index, text] of bad.entries()) {
      writeFileSync(keptFile(), text);
      const ended = await run(`broken-${index}`);
      expect(ended.stderr, text.slice(0, 200)).toContain("left aside");
      expect(calibrations(`broken-${index}`)).toBe(2);
      // That run measured a whole one, which is kept in its place.
      expect(readFileSync(keptFile(), "utf8")).toContain(digest);
    }
  });

  it("that the baseline does not bear out is a warning, and no other run takes it over", async () => {
    numbers();
    await run("first");
    const file = JSON.parse(readFileSync(keptFile(), "utf8")) as { value: { calibration: { results: { values: { score: number } }[] } } };
    for (const { values } of file.value.calibration.results) values.score += 5000;
    writeFileSync(keptFile(), JSON.stringify(file));
    const ended = await run("second");
    expect(ended.stderr).toContain("WARNING drift");
    expect(ended.stderr).toContain("--recalibrate");
    expect(readdirSync(join(lab.cache, "calibrations"))).toEqual([]);
    await run("third");
    expect(calibrations("third")).toBe(3);
  });

  it("whose baseline fails now stops the run before anything is searched, and no other run takes it over", async () => {
    const words = [proposes(scoring(1100)), proposes(scoring(1200))];
    const pack = numberPack({ seed: 1, words, calibrate: 3, gate: lab.gate });
    lab.write({ ...pack, "baseline/main.sh": `[ ! -e /gate/broken ] || exit 3\n${scoring(100)["main.sh"]}` });
    await run("first");
    lab.open("broken");
    const second = ["run", lab.pack, "--name", "second", "--researcher", "command:sh answer.sh", "--max-trials", "1", "--parallel", "2"];
    const ended = await commandLine(lab, ...second).ended;
    expect([ended.code, ended.stdout.replaceAll(/\s+/g, " ")]).toEqual([4, expect.stringContaining("ended crashed in stage train")]);
    expect(ended.stdout.replaceAll(/\s+/g, " ")).toContain("--recalibrate");
    expect(of(eventsOf("second"), "call.requested")).toEqual([]);
    expect(readdirSync(join(lab.cache, "calibrations"))).toEqual([]);
    rmSync(join(lab.gate, "broken"));
    expect((await commandLine(lab, "resume", "second").ended).code).toBe(0);
    const looks = of(eventsOf("second"), "measurement.requested").filter(({ data }) => data.reason === "remeasurement");
    expect(looks).toHaveLength(2);
    expect(await verifyRun(project(), "second")).toMatchObject({ ok: true });
    const replayed = await commandLine(lab, "replay", "second").ended;
    expect(replayed.code, replayed.stdout + replayed.stderr).toBe(0);
  });
});
