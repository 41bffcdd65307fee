import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { RunSummary } from "../../src/research/report/summary-schema.js";
import { Lab, numberPack, proposes, scoring, waiting } from "../support/lab.js";
import { buildProgram, document, expectPlain, type Started, said, start, startOnTerminal, trialist, until } from "./program.js";

/** With a terminal, as a person has it, and without one, as a script has it. */
const seed = 9;
const interrupt = "\u0003";
let lab: Lab;

beforeAll(buildProgram);
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

/** The gate is a mount, and opening it a change of the environment: runs are resumed with --frozen. */
function pack(...words: string[]): Record<string, string> {
  return numberPack({ seed, words, rule: "any", wall: "10 min", gate: lab.gate });
}

function starts(trials: number): string[] {
  const flags = ["--name", "run", "--researcher", "command:sh answer.sh", "--seed", String(seed), "--drafts", "50"];
  return ["run", lab.pack, ...flags, "--max-trials", String(trials)];
}

/** Resolves when a candidate of the search waits at its gate. */
async function untilItWaits(run: Started): Promise<void> {
  // Not the baseline, whose calibration is an open trial too and waits for nobody.
  await until("a searched trial is open", () => /searching[^\r\n]*1 open/.test(run.said()));
  await until("its program runs", () => lab.processes().some(({ command }) => command.includes("sh main.sh")));
}

/** Resolves with what the process came to, or with null when it has not ended in time. */
function soon(run: Started): Promise<Awaited<Started["ended"]> | null> {
  return Promise.race([run.ended, sleep(30_000, null)]);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what colours and moves is what is looked for
const colour = /\u001b\[\d+m/;
const liveLine = "\r\u001b[2K";

describe("on a terminal", () => {
  test("there are colours and a live line, which give way to the answer", async () => {
    lab.write(pack(proposes(scoring(300)), proposes({ "main.sh": "exit 3\n" })));
    const { code, stdout } = await startOnTerminal(lab, starts(2)).ended;
    expect(code).toBe(0);
    expect(stdout).toContain(liveLine);
    expect(stdout).toMatch(/calibrating/);
    expect(stdout).toMatch(/\d\/2 searching \| (baseline|best t1) \d+/);
    expect(stdout).toMatch(colour);
    // Nothing of the live line stays behind the answer.
    const answer = stdout.slice(stdout.lastIndexOf(liveLine) + liveLine.length);
    expect(answer).toMatch(/run {2}finished|run finished/);
    expect(answer).toMatch(/Won[\s\S]*Cost[\s\S]*Sandbox/);

    const status = await startOnTerminal(lab, ["status", "run"]).ended;
    expect(status.stdout).toMatch(colour);
    const plain = await startOnTerminal(lab, ["status", "run"], { variables: { NO_COLOR: "1" } }).ended;
    expect(plain.code).toBe(0);
    expectPlain(plain.stdout.replaceAll("\r\n", "\n"));
    expect(plain.stdout.replaceAll("\r\n", "\n")).toBe(await said(lab, ["status", "run"]));
  });

  test("what goes into a file has neither colour nor live line, on either side", async () => {
    lab.write(pack(proposes(scoring(300)), proposes({ "main.sh": "exit 3\n" })));
    const [notes, answer] = [join(lab.folder, "notes"), join(lab.folder, "answer")];
    const first = await startOnTerminal(lab, starts(2), { redirect: `2> ${notes}` }).ended;
    expect([first.code, first.stdout]).toEqual([0, expect.stringMatching(colour)]);
    expect(readFileSync(notes, "utf8")).toMatch(/^t1 +keep/m);
    expectPlain(readFileSync(notes, "utf8"));
    const second = await startOnTerminal(lab, [...starts(2), "--name", "other", "--json"], { redirect: `> ${answer}` }).ended;
    expect([second.code, second.stdout]).toEqual([0, expect.stringMatching(/t1 +keep/)]);
    expectPlain(readFileSync(answer, "utf8"));
    expect(JSON.parse(readFileSync(answer, "utf8"))).toMatchObject({ run: "other", state: "finished" });
  });

  test("Ctrl-C once: the step ends, the run is paused, resume finishes it", async () => {
    lab.write(pack(proposes(waiting("end", 300)), proposes(scoring(400))));
    const run = startOnTerminal(lab, starts(2));
    await untilItWaits(run);
    run.child.stdin?.write(interrupt);
    await until("it says what it does", () => run.said().includes("Stopping after the current step; everything is saved"));
    await sleep(500);
    expect(run.child.exitCode).toBe(null);
    lab.open("end");
    const ended = await run.ended;
    expect([ended.code, ended.stdout]).toEqual([130, expect.stringMatching(/`trialist resume run` goes on/)]);
    expect(await document<RunSummary>(lab, ["status", "run"])).toMatchObject({
      state: "paused",
      reason: expect.stringMatching(/keyboard/),
    });
    expect(await lab.leftovers()).toEqual([]);
    expect(await document<RunSummary>(lab, ["resume", "run", "--frozen"])).toMatchObject({
      state: "finished",
      trials: { keep: 2, infrastructure_error: 0, cancelled: 0 },
    });
    expect(await said(lab, ["verify", "run"])).toMatch(/check out/);
    expect(await lab.leftovers()).toEqual([]);
  });

  test("Ctrl-C twice: it leaves at once, and resume goes on with what still ran", async () => {
    lab.write(pack(proposes(waiting("end", 300))));
    const run = startOnTerminal(lab, starts(1));
    await untilItWaits(run);
    run.child.stdin?.write(interrupt);
    await until("it says what it does", () => run.said().includes("Once more to leave at once"));
    run.child.stdin?.write(interrupt);
    // The candidate still waits at its gate: only a process that leaves ends now.
    const left = await soon(run);
    expect(left?.code).toBe(130);
    expect(await document<RunSummary>(lab, ["status", "run"])).toMatchObject({ state: "paused", progress: { done: 0, open: 1 } });
    const resumed = trialist(lab, ["resume", "run", "--frozen", "--json"]);
    lab.open("end");
    const { code, stdout } = await resumed;
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      expect.objectContaining({ state: "finished", best: expect.objectContaining({ trial: "t1" }) }),
    ]);
    expect(await lab.leftovers()).toEqual([]);
    expect(lab.scratch()).toEqual([]);
  });
});

describe("without a terminal", () => {
  test("progress goes to standard error, line by line and plain; SIGINT pauses all the same", async () => {
    lab.write(pack(proposes(scoring(300)), proposes({ "main.sh": "exit 3\n" }), proposes(waiting("end", 400))));
    // Colour that is asked for by other means than a terminal is not what this program listens to.
    const run = start(lab, starts(3), { variables: { NO_COLOR: "1" } });
    await until("two trials have ended", () => /^t2 +crashed/m.test(run.said()));
    await until("the third runs", () => lab.processes().some(({ command }) => command.includes("sh main.sh")));
    run.child.kill("SIGINT");
    await until("it says what it does", () => run.said().includes("Stopping after the current step"));
    lab.open("end");
    const { code, stdout, stderr } = await run.ended;
    expect(code).toBe(130);
    expectPlain(stdout + stderr);
    expect(stderr.split("\n").map((line) => line.split(" ")[0])).toEqual(
      expect.arrayContaining(["run", "t0", "calibrated:", "t1", "t2", "Stopping", "`trialist"]),
    );
    expect(stdout).toMatch(/^run +paused/);
    const resumed = await trialist(lab, ["resume", "run", "--frozen"]);
    expect([resumed.code, resumed.stdout]).toEqual([0, expect.stringMatching(/^run +finished/)]);
    expectPlain(resumed.stdout + resumed.stderr);
    expect(await lab.leftovers()).toEqual([]);
  });
});
