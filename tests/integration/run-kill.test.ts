import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runKey } from "../../src/app/executors.js";
import { Project } from "../../src/app/project.js";
import { drawsOf } from "../../src/core/harness/draw.js";
import type { StoredRunEvent } from "../../src/core/protocol/events.js";
import { drive, driven } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, proposes, scoring } from "../support/lab.js";
import type { Death, Report, Step } from "../support/run-driver.js";

/**
 * `kill -9` of trialist, wherever it hurts. Undisturbed, the serial run here holds a keep by confirmation, a crash, a
 * duplicate that is refused, the crash's repair, and a retraction of the leader while a call is on its way.
 *
 * An append is all or nothing, so between two of them lies every state that a death can leave. Each is a point of death
 * twice: right before it, when what it records was done and is not recorded, and right after it. A run of its own is
 * killed at each point once and then goes on undisturbed; beside them two runs are killed at all points, one process
 * after the other. TRIALIST_KILL_STEP=10 takes every tenth point, in turn by the day; 1, all of them, is the default.
 */
const seed = 1;
const story = numberPack({
  seed,
  words: [
    proposes(scoring(1100)),
    proposes({ "main.sh": "exit 3\n" }),
    { 1: proposes(scoring(1100)), 2: proposes(scoring(600)) },
    proposes(scoring(50)),
  ],
});
const request = { seed, organization: { name: "tree", configuration: { drafts: 2, debugProbability: 1 } } };
const retractions = [{ trial: "t1", whenRequested: "c4" }];
const killStep = Number(process.env["TRIALIST_KILL_STEP"] ?? 1);
const lanes = 2;

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

function begin(name: string, death?: Death): Step[] {
  return [{ do: "create", name, request, ...(death === undefined ? {} : { death }) }, goOn(name)];
}

function goOn(name: string, death?: Death): Step {
  return { do: "work", name, retractions, mayBeOver: true, ...(death === undefined ? {} : { death }) };
}

async function undisturbed(): Promise<Report> {
  const [report] = await driven(lab, [...begin("undisturbed"), { do: "report", name: "undisturbed" }]);
  if (report === undefined) throw new Error("no report");
  return report;
}

/** Whole, over, and nothing in it twice. */
function expectSound(report: Report): void {
  expect(report).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
  const once = (names: readonly string[]): void => expect(new Set(names).size).toBe(names.length);
  once(of(report.events, "trial.admitted").map((event) => event.data.trial));
  once(of(report.events, "trial.ended").map((event) => event.data.trial));
  once(of(report.events, "trial.retracted").map((event) => event.data.trial));
  once(of(report.events, "call.answered").map((event) => event.data.call));
  once(
    of(report.events, "attempt.ended")
      .filter((event) => event.data.result.kind !== "interrupted")
      .map((event) => event.data.measurement),
  );
  once(of(report.events, "stage.started").map(({ data }) => `${data.measurement}.${data.attempt}/${data.stage}#${data.repeat}`));
  expect(of(report.events, "trial.ended")).toHaveLength(of(report.events, "trial.admitted").length);
}

/** The supervisor outlived its trialist, so no attempt was lost and none was made twice. */
function expectNothingRunTwice(report: Report, reference: Report): void {
  expect(of(report.events, "attempt.started")).toHaveLength(of(reference.events, "attempt.started").length);
  expect(of(report.events, "stage.started")).toHaveLength(of(reference.events, "stage.started").length);
}

async function expectNothingLeft(): Promise<void> {
  expect(await lab.leftovers()).toEqual([]);
  expect(lab.scratch()).toEqual([]);
}

function deathsOf(appends: number): Death[] {
  const offset = Math.floor(Date.now() / 86_400_000) % killStep;
  const all = Array.from({ length: appends }, (_, index) => index + 1).flatMap((append): Death[] => [
    { side: "before", append },
    { side: "after", append },
  ]);
  // Before its first append a run is none; there is a test of its own for that.
  return all.slice(1).filter((_, index) => index % killStep === offset);
}

describe("kill -9", () => {
  it("at every single event: the run ends as if nobody had killed it", { timeout: 1_200_000 }, async () => {
    const reference = await undisturbed();
    expectSound(reference);
    expect(new Set(of(reference.events, "trial.ended").map((event) => event.data.status))).toEqual(new Set(["keep", "crashed", "discard"]));
    for (const type of ["call.refused", "trial.confirmed", "trial.retracted"] as const) expect(of(reference.events, type)).toHaveLength(1);

    const deaths = deathsOf(reference.appends);
    const nameOf = ({ side, append }: Death): string => `killed-${side}-${append}`;
    let kills = 0;
    const lane = async (which: number): Promise<void> => {
      const mine = deaths.filter((_, index) => index % lanes === which);
      // Each process brings the run of the one before to its end, then begins the next and dies in it.
      for (const [index, death] of [...mine, null].entries()) {
        const last = mine[index - 1];
        const before: Step[] = last === undefined ? [] : [goOn(nameOf(last)), { do: "report", name: nameOf(last) }];
        const { code, signal, stderr, reports } = await drive(lab, [...before, ...(death === null ? [] : begin(nameOf(death), death))])
          .ended;
        expect({ after: last, stderr }).toEqual({ after: last, stderr: "" });
        if (death !== null && signal === "SIGKILL") kills += 1;
        else expect(code).toBe(0);
        if (last === undefined) continue;
        const [report] = reports;
        if (report === undefined) throw new Error(`${nameOf(last)} was not reported`);
        expect({ ...last, projection: report.projection }).toEqual({ ...last, projection: reference.projection });
        expectSound(report);
        expectNothingRunTwice(report, reference);
      }
    };
    await Promise.all(Array.from({ length: lanes }, (_, which) => lane(which)));
    // What is recorded together hangs on the moment, so that a run may have an append more or less than another.
    expect(kills).toBeGreaterThanOrEqual(deaths.length - 6);
    await expectNothingLeft();
  });

  it("at every single event of one run, again and again", { timeout: 900_000 }, async () => {
    const reference = await undisturbed();
    // The first append of an owner says that it is one. Then the run's next is made, and the death comes right after it;
    // or the next is made and what the one behind it would record is done, and the death comes right before that.
    const hunts = [
      { name: "hunted-after", first: { side: "after", append: 1 }, again: { side: "after", append: 2 } },
      { name: "hunted-before", first: { side: "before", append: 2 }, again: { side: "before", append: 3 } },
    ] as const;
    const hunt = async ({ name, first, again }: (typeof hunts)[number]): Promise<void> => {
      expect((await drive(lab, begin(name, first)).ended).signal).toBe("SIGKILL");
      let deaths = 1;
      for (; deaths < 2 * reference.appends; deaths++) {
        const { signal, stderr } = await drive(lab, [goOn(name, again)]).ended;
        expect({ name, deaths, stderr }).toEqual({ name, deaths, stderr: "" });
        if (signal === null) break;
      }
      const [report] = await driven(lab, [{ do: "report", name }]);
      if (report === undefined) throw new Error("no report");
      expectSound(report);
      expect(report.projection).toEqual(reference.projection);
      expectNothingRunTwice(report, reference);
      expect(deaths).toBeGreaterThan(reference.appends / 2);
    };
    await Promise.all(hunts.map(hunt));
    await expectNothingLeft();
  });

  beforeEach(() => lab.write(story));

  it("before anything is recorded: there is no run, and that is said", async () => {
    await drive(lab, begin("unborn", { side: "before", append: 1 })).ended;
    const { code, stderr } = await drive(lab, [goOn("unborn")]).ended;
    expect(code).toBe(3);
    expect(stderr).toMatch(/thrown: RefusedError: .*unborn, whose ledger is empty.*Remove that folder/s);
    await expectNothingLeft();
  });
});

describe("kill -9 while a stage runs", () => {
  const slow = { "main.sh": `sleep 3; ${scoring(1100)["main.sh"]}` };
  beforeEach(() => lab.write(numberPack({ seed, words: [proposes(slow)], rule: "any" })));
  const short = { ...request, budget: { trials: 1, costUsd: null, tokens: null, computeMs: null, wallMs: null } };
  const start = (name: string): Step[] => [{ do: "create", name, request: short }, goOn(name)];
  const report = (name: string): Step => ({ do: "report", name });

  /** Resolves when the first trial's program runs. */
  async function untilItRuns(name: string): Promise<void> {
    const status = join(lab.cache, "executors", runKey(new Project(lab.project).runFolder(name)), "executions", "m3.1+train-1", "status");
    for (let waited = 0; waited < 60_000; waited += 20) {
      if (existsSync(status) && readFileSync(status, "utf8").includes("child-pid")) return;
      await sleep(20);
    }
    throw new Error(`the stage did not start; there are ${readdirSync(lab.cache).join(", ")}`);
  }

  async function killedWhileItRuns(name: string): Promise<void> {
    const { child, ended } = drive(lab, start(name));
    await untilItRuns(name);
    child.kill("SIGKILL");
    expect((await ended).signal).toBe("SIGKILL");
  }

  const stages = (events: readonly StoredRunEvent[]) =>
    of(events, "stage.ended").filter(({ data }) => data.measurement === "m3" && data.stage === "train");

  it("adopts it where it lives, and collects it where it ended meanwhile", async () => {
    const [reference] = await driven(lab, [...start("undisturbed"), report("undisturbed")]);
    for (const [name, absence] of [
      ["adopted", 0],
      ["collected", 5000],
    ] as const) {
      await killedWhileItRuns(name);
      await sleep(absence);
      const [resumed] = await driven(lab, [goOn(name), report(name)]);
      if (resumed === undefined || reference === undefined) throw new Error("no report");
      expectSound(resumed);
      expectNothingRunTwice(resumed, reference);
      expect(resumed.projection).toEqual(reference.projection);
      expect(stages(resumed.events)).toHaveLength(1);
      expect(stages(resumed.events)[0]?.data.outcome.wallMs).toBeGreaterThan(2900);
      expect(stages(resumed.events)[0]?.data.outcome.wallMs).toBeLessThan(6000);
    }
    await expectNothingLeft();
  });

  it("makes the attempt again when its supervisor was killed too, and counts it as interrupted", async () => {
    const [reference] = await driven(lab, [...start("undisturbed"), report("undisturbed")]);
    await killedWhileItRuns("orphaned");
    const supervisors = lab.processes().filter((each) => each.command.startsWith("trialist-supervisor"));
    expect(supervisors.length).toBeGreaterThan(0);
    for (const { pid } of supervisors) process.kill(pid, "SIGKILL");
    const [resumed] = await driven(lab, [goOn("orphaned"), report("orphaned")]);
    if (resumed === undefined || reference === undefined) throw new Error("no report");
    expectSound(resumed);
    expect(
      of(resumed.events, "attempt.ended")
        .filter(({ data }) => data.measurement === "m3")
        .map(({ data }) => data.result.kind),
    ).toEqual(["interrupted", "measured"]);
    expect(resumed.projection).toEqual(reference.projection);
    await expectNothingLeft();
  });
});

describe("kill -9 of a parallel run", () => {
  it("loses nothing and doubles nothing", { timeout: 600_000 }, async () => {
    const trials = 8;
    const words = Array.from({ length: trials }, (_, index) =>
      proposes(index === 3 ? { "main.sh": "exit 4\n" } : scoring(200 + 300 * ((index * 5) % 8))),
    );
    lab.write(numberPack({ seed, words }));
    const parallel = {
      ...request,
      parallel: 2,
      organization: { name: "tree", configuration: { drafts: trials } },
      budget: { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    };
    const draws = drawsOf(Math.floor(Date.now() / 86_400_000));
    const at = (kill: number): Death => ({
      side: draws.uniform("side", kill) < 0.5 ? "before" : "after",
      append: 3 + draws.pick("append", kill, 25),
    });
    const signals = [(await drive(lab, [{ do: "create", name: "pair", request: parallel, death: at(0) }, goOn("pair")]).ended).signal];
    for (let kill = 1; kill < 5; kill++) signals.push((await drive(lab, [goOn("pair", at(kill))]).ended).signal);
    // A kill point may lie behind the end of what was left of the run; then that owner finished it.
    expect(signals.slice(0, 3)).toEqual(["SIGKILL", "SIGKILL", "SIGKILL"]);
    const [report] = await driven(lab, [goOn("pair"), { do: "report", name: "pair" }]);
    if (report === undefined) throw new Error("no report");
    expectSound(report);
    expect(of(report.events, "attempt.ended").filter(({ data }) => data.result.kind === "interrupted")).toEqual([]);
    const ended = of(report.events, "trial.ended").map(({ data }) => data);
    expect(ended.filter(({ trial }) => trial !== "t0")).toHaveLength(trials);
    expect(ended.filter(({ status }) => status === "crashed")).toHaveLength(1);
    const started = of(report.events, "attempt.started").map(({ data }) => data.measurement);
    expect(new Set(started)).toEqual(new Set(of(report.events, "measurement.requested").map(({ data }) => data.measurement)));
    await expectNothingLeft();
  });
});
