import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { askOwner } from "../../src/adapters/ledger/owner-socket.js";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import type { RunState } from "../../src/core/harness/state.js";
import type { StoredRunEvent } from "../../src/core/protocol/events.js";
import type { QueueView } from "../../src/research/report/queue-view.js";
import { commandLine, type Driven, drive, driven, type Ended } from "../support/drive.js";
import { of } from "../support/events.js";
import { Lab, numberPack, proposes, scoring, waiting } from "../support/lab.js";
import type { Report, Step } from "../support/run-driver.js";

/** An operator who steers a run from another process: what is measured next, and what is not. */
const seed = 5;
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

const create = (trials: number, drafts = 50, name = "run"): Step => ({
  do: "create",
  name,
  request: {
    seed,
    budget: { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    organization: { name: "tree", configuration: { drafts, debugProbability: 0 } },
  },
});
const go = (name = "run"): Step => ({ do: "work", name });
const tell = (name = "run"): Step => ({ do: "report", name });

async function reported(steps: readonly Step[], name = "run"): Promise<Report> {
  const report = (await driven(lab, [...steps, tell(name)])).at(-1);
  if (report === undefined) throw new Error("no report");
  return report;
}

/** A pack whose candidates may wait at the lab's gate, with a folder of editable files beside main.sh. */
function writePack(first: string | { readonly rule: "confirmed" }, ...rest: string[]): void {
  const [rule, words] = typeof first === "string" ? (["any", [first, ...rest]] as const) : ([first.rule, rest] as const);
  const files = numberPack({ seed, words, rule, wall: "10 min", gate: lab.gate });
  lab.write({ ...files, "environment.yaml": (files["environment.yaml"] ?? "").replace('["main.sh"]', '["main.sh", "lib/**"]') });
}

/** A folder of a person who had an idea. */
function idea(name: string, files: Readonly<Record<string, string>>): string {
  const folder = join(lab.folder, "ideas", name);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, ".."), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

async function said(...words: string[]): Promise<Ended> {
  return commandLine(lab, ...words).ended;
}

async function queueNow(): Promise<QueueView> {
  return JSON.parse((await said("queue", "run", "--json")).stdout) as QueueView;
}

function stateNow(): RunState {
  const inspected = inspectRun(new Project(lab.project), "run");
  inspected.close();
  return inspected.state;
}

/** Resolves with the driver that works on the run, once an attempt of this measurement is on record. */
async function workedOn(trials: number, measurement: string): Promise<Driven> {
  await driven(lab, [create(trials)]);
  const owner = drive(lab, [go(), tell()]);
  await begun(measurement);
  return owner;
}

/** Resolves when a stage of this measurement is on record as started. */
async function begun(measurement: string): Promise<void> {
  return until((state) => state.measurements[measurement]?.startedStage != null);
}

async function until(holds: (state: RunState) => boolean): Promise<void> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(50)) if (holds(stateNow())) return;
  throw new Error(`the run did not come that far: ${JSON.stringify(await queueNow())}`);
}

const hypotheses = (events: readonly StoredRunEvent[]): string[] => of(events, "plan.proposed").map(({ data }) => data.hypothesis);

describe("the queue of a run that another process owns", () => {
  it("is listed, added to, moved in and taken from, and is worked off before what researchers want", async () => {
    writePack(proposes(waiting("first", 200), "of the researcher"), proposes(scoring(250), "of the researcher too"));
    const owner = await workedOn(4, "m3");
    const [a, b, c] = ["a", "b", "c"].map((name, index) => idea(name, { ...scoring(300 + index), "notes.md": "mine" }));
    const reason = ["--reason", "worth a look"];
    const added = await said("queue", "run", "add", a ?? "", "--hypothesis", "idea a\nin two lines", ...reason);
    expect([added.code, added.stdout]).toEqual([0, expect.stringMatching(/^q1 waits in the queue of run.*\nLeft out.*: 1 of/s)]);
    expect((await said("queue", "run", "add", b ?? "", "--hypothesis", "idea b", "--json", ...reason)).stdout).toContain('"entry": "q2"');
    expect((await said("queue", "run", "add", c ?? "", "--hypothesis", "idea c", "--before", "q1", ...reason)).code).toBe(0);
    expect((await said("queue", "run", "remove", "q2", "--reason", "on second thought")).code).toBe(0);
    expect((await said("queue", "run", "move", "q3", "--reason", "later")).code).toBe(0);

    const view = await queueNow();
    expect(view.queue.map(({ entry, hypothesis, submitter, base }) => [entry, hypothesis, submitter, base])).toEqual([
      ["q1", "idea a\nin two lines", "operator", "t0"],
      ["q3", "idea c", "operator", "t0"],
    ]);
    expect(view.trials).toMatchObject([{ trial: "t1", measurements: [{ measurement: "m3", reason: "first", isRunning: true }] }]);
    const text = (await said("queue", "run")).stdout;
    expect(text).toMatch(/q1 +operator +from t0 +idea a in two lines/);
    expect(text).toMatch(/t1 +measuring +first: 1 running +of the researcher/);
    expect(await said("queue", "run", "remove", "t1", "--reason", "no")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/nothing runs/),
    });

    lab.open("first");
    const { code, reports } = await owner.ended;
    expect(code).toBe(0);
    expect(reports[0]).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
    const events = reports[0]?.events ?? [];
    expect(hypotheses(events)).toEqual(["of the researcher", "idea a\nin two lines", "idea c", "of the researcher too"]);
    expect(of(events, "operator.acted").map(({ data }) => [data.action, data.subject, data.reason])).toEqual([
      ["enqueue", "q1", "worth a look"],
      ["enqueue", "q2", "worth a look"],
      ["enqueue", "q3", "worth a look"],
      ["dequeue", "q2", "on second thought"],
      ["requeue", "q3", "later"],
    ]);
    expect(await said("replay", "run")).toMatchObject({ code: 0 });
  });

  it("takes a candidate of another run, and refuses what is none of this surface", async () => {
    writePack(proposes(scoring(200), "wins elsewhere"));
    await driven(lab, [create(1, 50, "other"), go("other")]);
    writePack(proposes(waiting("first", 201)));
    const owner = await workedOn(2, "m3");
    const reason = ["--reason", "r", "--hypothesis", "h"];
    expect((await said("queue", "run", "add", "other:t1", "--reason", "it won there")).code).toBe(0);
    const refusals: [string, RegExp][] = [
      ["other:t9", /a trial of other; found "t9"/],
      ["nobody:t1", /name of a run/],
      ["other:t0", /same content as trial t0/],
      [idea("empty", { "evaluate.sh": "echo 1" }), /files of the surface.*baseline/s],
      [idea("huge", { "main.sh": "#".repeat(2 ** 20 + 1) }), /at most 1048576 bytes/],
      [idea("newline", { "lib/a\nb.sh": "" }), /files of the surface/],
      [idea("bell", { ...scoring(1), "lib/a\u0007b.sh": "" }), /plain file name.*control character/s],
      [join(lab.folder, "nowhere\u001b[2J"), /a folder with the candidate's files/],
    ];
    const linked = idea("linked", { "lib/x.sh": "" });
    symlinkSync("/etc/passwd", join(linked, "main.sh"));
    refusals.push([linked, /regular files alone.*symbolic link/s]);
    for (const [what, words] of refusals) {
      const { code, stderr } = await said("queue", "run", "add", what, ...reason);
      expect([code, stderr]).toEqual([2, expect.stringMatching(words)]);
      expect(stderr).not.toContain("\u001b");
    }
    expect((await queueNow()).queue).toMatchObject([
      { entry: "q1", hypothesis: "from other:t1: wins elsewhere", move: { from: "other:t1" } },
    ]);
    lab.open("first");
    expect((await owner.ended).reports[0]).toMatchObject({ phase: "finished", verified: { ok: true } });
  });

  it("refuses messages that no command of ours sends, and stays", async () => {
    writePack(proposes(waiting("first", 200)));
    const owner = await workedOn(1, "m3");
    const folder = new Project(lab.project).runFolder("run");
    const good = { type: "add_candidate", base: "t0", before: null, hypothesis: "h", reason: "r", move: {} };
    const content = Buffer.from("echo 1").toString("base64");
    const file = (path: string) => ({ path, executable: false, content });
    const bad: unknown[] = [
      { ...good, files: [file("../evaluate.sh")] },
      { ...good, files: [file("evaluate.sh")] },
      { ...good, files: [file("/etc/passwd")] },
      { ...good, files: [file("lib/a\nb")] },
      { ...good, files: [file("main.sh"), file("main.sh")] },
      { ...good, files: [file("lib/a"), file("lib/a/b")] },
      { ...good, files: [] },
      { ...good, files: [{ ...file("main.sh"), content: "no base64!" }] },
      { ...good, files: Array.from({ length: 2001 }, (_, index) => file(`lib/${index}`)) },
      { ...good, files: [file("main.sh")], base: "constructor" },
      { ...good, files: [file("main.sh")], submitter: "somebody else" },
      { ...good, files: [{ ...file("main.sh"), content: "A".repeat(2 ** 21) }] },
      { type: "enqueue" },
    ];
    for (const message of bad) await expect(askOwner(folder, message, { maxLength: 2 ** 23 })).rejects.toThrow();
    const talk = askOwner(folder, { type: "note", reason: "n".repeat(2001) });
    await expect(talk).rejects.toThrow(/expected a request that a run takes; found .*Too big: expected string to have <=2000 characters/);
    expect(stateNow().queue).toEqual([]);
    expect(await askOwner(folder, { ...good, files: [file("main.sh")] })).toMatchObject({ result: { entry: "q1" } });
    lab.open("first");
    expect((await owner.ended).reports[0]).toMatchObject({ phase: "finished", verified: { ok: true } });
  });
});

describe("the queue of a run that nobody owns", () => {
  it("says which files of the baseline a folder that is no whole candidate removes", async () => {
    writePack(proposes(scoring(200), "first"));
    lab.write({ "baseline/lib/a b.sh": "echo\n", "baseline/lib/c.sh": "echo\n" });
    await driven(lab, [create(3)]);
    await drive(lab, [{ do: "work", name: "run", death: { side: "after", append: 6 } }]).ended;
    const add = (folder: string, ...words: string[]) =>
      said("queue", "run", "add", folder, "--hypothesis", "idea", "--reason", "r", ...words);
    const part = await add(idea("a", scoring(300)));
    expect(part.stdout).toContain(
      'It removes 2 files that the baseline has: "lib/a b.sh", lib/c.sh; a folder stands for the whole candidate.',
    );
    const less = await add(idea("b", { ...scoring(301), "lib/c.sh": "echo\n" }), "--json");
    expect(JSON.parse(less.stdout)).toMatchObject({ entry: "q2", removes: ["lib/a b.sh"] });
    const whole = await add(idea("c", { ...scoring(302), "lib/c.sh": "echo\n", "lib/a b.sh": "echo\n" }));
    expect(whole.stdout).not.toContain("removes");
  });

  it("survives a kill: what was added meanwhile is measured once the run goes on", async () => {
    writePack(proposes(scoring(200), "first"), proposes(scoring(220), "second"));
    await driven(lab, [create(3)]);
    await drive(lab, [{ do: "work", name: "run", death: { side: "after", append: 6 } }]).ended;
    const folder = idea("a", scoring(300));
    const added = await said("queue", "run", "add", folder, "--hypothesis", "idea", "--reason", "r", "--json");
    expect(JSON.parse(added.stdout)).toMatchObject({ entry: "q1", by: "this process" });
    await drive(lab, [{ do: "work", name: "run", death: { side: "before", append: 5 } }]).ended;
    const report = await reported([go()]);
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
    expect(hypotheses(report.events).filter((each) => each === "idea")).toHaveLength(1);
    expect(hypotheses(report.events)).toHaveLength(3);
    expect(await said("replay", "run")).toMatchObject({ code: 0 });
  });
});

describe("a trial that the operator holds or pins", () => {
  it("is left alone or improved next, through the owner, and everybody can see it", async () => {
    writePack(
      proposes(scoring(200), "one"),
      proposes(waiting("second", 300), "two"),
      proposes(scoring(250), "three"),
      proposes(scoring(260), "four"),
    );
    await driven(lab, [create(4, 1)]);
    const owner = drive(lab, [go(), tell()]);
    await begun("m4");
    expect((await said("hold", "run", "t2", "--reason", "suspicious\u001b[2J")).code).toBe(0);
    expect((await said("pin", "run", "t1", "--reason", "simple")).stdout).toBe("t1 is pinned.\n");
    expect(await said("pin", "run", "t2", "--reason", "no")).toMatchObject({ code: 2, stderr: expect.stringMatching(/still measured/) });
    const status = (await said("status", "run")).stdout;
    expect(status).toMatch(/Held back {2}t2: suspicious\\u\{1b\}\[2J\nPinned {5}t1: simple/);
    expect((await said("show", "run")).stdout).toMatch(/t1 +t0 +keep, pinned.*\n.*t2 +t1 +measuring, held/);
    expect((await said("show", "run", "t2")).stdout).toMatch(/measuring, held\n.*Held {7}suspicious/s);
    expect((await queueNow()).trials).toMatchObject([{ trial: "t2", isHeld: true, measurements: [{ isRunning: true }] }]);
    lab.open("second");
    const { code, reports } = await owner.ended;
    expect(code).toBe(0);
    const events = reports[0]?.events ?? [];
    expect(reports[0]).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
    expect(of(events, "trial.ended").find(({ data }) => data.trial === "t2")?.data.status).toBe("keep");
    expect(of(events, "trial.admitted").map(({ data }) => data.base)).toEqual([null, "t0", "t1", "t1", "t1"]);
    expect(await said("replay", "run")).toMatchObject({ code: 0 });
  });

  it("waits through a kill, does not stop the run, and is measured when it is released", async () => {
    writePack({ rule: "confirmed" }, proposes(waiting("first", 400), "one"), proposes(waiting("second", 200), "two"));
    await driven(lab, [create(3)]);
    const owner = drive(lab, [go()]);
    await begun("m3");
    await said("queue", "run", "add", idea("a", scoring(150)), "--hypothesis", "idea", "--reason", "r");
    expect((await said("hold", "run", "t1", "--reason", "wait")).code).toBe(0);
    lab.open("first");
    // Its first measurement ends; its confirmations do not begin, and what is queued is measured instead, then what is proposed.
    await until((state) => state.trials["t3"] !== undefined);
    owner.child.kill("SIGKILL");
    await owner.ended;
    expect(stateNow().trials["t1"]).toMatchObject({ phase: "provisional", pending: 4 });
    expect(stateNow().trials["t2"]).toMatchObject({ phase: expect.stringMatching(/ended|provisional/), hypothesis: "idea" });
    const released = await said("release", "run", "t1", "--reason", "go", "--json");
    expect(JSON.parse(released.stdout)).toMatchObject({ steer: "free", by: "this process" });
    lab.open("second");
    const report = await reported([go()]);
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
    expect(of(report.events, "trial.ended").find(({ data }) => data.trial === "t1")?.data.status).toBe("keep");
    expect(await said("replay", "run")).toMatchObject({ code: 0 });
    expect(await lab.leftovers()).toEqual([]);
  });
});

describe("a warm start", () => {
  const start = (...words: string[]) =>
    said("run", lab.pack, "--name", "run", "--researcher", "command:sh answer.sh", "--seed", String(seed), "--drafts", "50", ...words);

  it("begins with another run's best keeps, the newest first, measured anew and each for a trial", async () => {
    writePack(proposes(scoring(200), "a"), proposes(scoring(300), "b"), proposes(scoring(50), "c"), proposes(scoring(400), "d"));
    await driven(lab, [create(4, 50, "other"), go("other")]);
    expect((await said("retract", "other", "t4", "--reason", "leak")).code).toBe(0);
    writePack(proposes(scoring(350), "here"));
    expect((await start("--warm-start", "other", "--warm-start-top", "2", "--max-trials", "3")).code).toBe(0);
    const report = await reported([]);
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
    expect(hypotheses(report.events)).toEqual(["warm start: t2 of other: b", "warm start: t1 of other: a", "here"]);
    expect(of(report.events, "trial.admitted").map(({ data }) => data.move)).toMatchObject([
      {},
      { from: "other:t2" },
      { from: "other:t1" },
      {},
    ]);
    expect(of(report.events, "measurement.requested").filter(({ data }) => data.reason === "first")).toHaveLength(3);
    expect(await said("replay", "run")).toMatchObject({ code: 0 });
  });

  it("takes the trials that are named, and says what does not fit before anything is made", async () => {
    writePack(proposes(scoring(200), "a"), proposes(scoring(50), "b"), proposes({ ...scoring(220), "lib/x.sh": "true\n" }, "c"));
    await driven(lab, [create(3, 50, "other"), go("other")]);
    await driven(lab, [create(1, 50, "paused")]);
    expect((await said("pause", "paused", "--reason", "later")).code).toBe(0);
    const narrow = numberPack({ seed, words: [proposes(scoring(350), "here")], rule: "any" });
    lab.write(narrow);
    const refusals: [string[], RegExp][] = [
      [["nobody"], /the name of a run of this project; found "nobody"/],
      [["../other"], /a run name/],
      [["other:t9"], /a trial of other; found "t9"/],
      [["other:t3"], /surface of number \(main\.sh\); found t3 of other: only main\.sh may be changed \("lib\/x\.sh"\).*widen/s],
      [["other"], /found t3 of other: only main\.sh/],
      [["other:t0"], /differs from the environment's baseline; found t0 of other/],
      [["paused"], /a keep that stands; found paused, which has none.*paused:t3/s],
      [["other:x"], /RUN:t3,t7/],
      [["other:t1", "--warm-start-top", "1"], /the trials are named/],
    ];
    for (const [words, expected] of refusals) {
      const { code, stderr } = await start("--warm-start", ...words);
      expect([code, stderr]).toEqual([2, expect.stringMatching(expected)]);
    }
    expect(new Project(lab.project).runNames()).toEqual(["other", "paused"]);
    expect((await start("--warm-start", "other:t2,t1", "--max-trials", "3")).code).toBe(0);
    expect(hypotheses((await reported([])).events)).toEqual(["warm start: t2 of other: b", "warm start: t1 of other: a", "here"]);
  });

  it("never takes a retracted trial", async () => {
    writePack(proposes(scoring(200), "a"), proposes(waiting("second", 300), "b"));
    await driven(lab, [create(2)]);
    const owner = drive(lab, [go()]);
    await begun("m4");
    expect((await said("retract", "run", "t1", "--reason", "leak")).code).toBe(0);
    const warm = (from: string) =>
      said("run", lab.pack, "--name", "next", "--researcher", "command:sh answer.sh", "--max-trials", "1", "--warm-start", from);
    expect(await warm("run:t1")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/a trial that stands; found t1 of run, which was retracted/),
    });
    expect(await warm("run")).toMatchObject({ code: 2, stderr: expect.stringMatching(/a keep that stands; found run, which has none/) });
    lab.open("second");
    await owner.ended;
  });
});

describe("a word of the operator", () => {
  /** Shell text of a researcher that repeats in its hypothesis what the document says of the operator's words. */
  const repeating = (files: Readonly<Record<string, string>>): string =>
    [
      `notes=$(printf '%s' "$DOCUMENT" | sed -n 's/.*"notes":\\(\\[[^]]*\\]\\).*/\\1/p' | tr '"' "'")`,
      `steering=$(printf '%s' "$DOCUMENT" | sed -n 's/.*"steering":\\({[^}]*}\\).*/\\1/p' | tr '"' "'")`,
      `printf '{"plan":{"hypothesis":"notes %s, steering %s"},"files":%s}' "$notes" "$steering" '${JSON.stringify(files).replaceAll("'", "")}'`,
    ].join("\n");

  it("reaches a command researcher with the next question", async () => {
    writePack(repeating(waiting("first", 200)), repeating(scoring(300)), repeating(scoring(400)));
    await driven(lab, [create(3, 1)]);
    const owner = drive(lab, [go(), tell()]);
    await begun("m3");
    expect((await said("note", "run", "stay with trees")).code).toBe(0);
    lab.open("first");
    await until((state) => state.trials["t1"]?.phase === "ended");
    await said("pin", "run", "t1", "--reason", "simple");
    const report = (await owner.ended).reports[0];
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true } });
    const [first, second] = hypotheses(report?.events ?? []);
    expect([first, second]).toEqual([
      "notes [], steering {'held':[],'pinned':[]}",
      expect.stringMatching(/^notes \['stay with trees'\], steering \{'held':\[\],'pinned':\[('t1')?\]\}$/),
    ]);
    expect(await said("replay", "run")).toMatchObject({ code: 0 });
  });
});
