import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { commandLine } from "../support/drive.js";
import { Lab, numberPack, proposes, scoring, waiting } from "../support/lab.js";

const seed = 11;
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
  lab.write(numberPack({ seed, words: [proposes(scoring(300)), proposes(waiting("go", 500))], rule: "any", gate: lab.gate }));
});
afterEach(() => lab.remove());

const start = ["--seed", String(seed), "--drafts", "200", "--researcher", "command:sh answer.sh", "--max-trials", "2"];

describe("a detached run", () => {
  it("outlives the process that started it, is looked at by any number, and ends as any other", async () => {
    const started = await commandLine(lab, "run", lab.pack, "--name", "night", "--detach", "--json", ...start).ended;
    expect([started.code, started.stderr]).toEqual([0, expect.anything()]);
    const { pid } = JSON.parse(started.stdout) as { pid: number };
    expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).toContain("resume");
    // A session of its own: no terminal that closes reaches it.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    expect(stat[3]).toBe(String(pid));

    const lookers = [commandLine(lab, "attach", "night"), commandLine(lab, "attach", "night")];
    const left = commandLine(lab, "attach", "night");
    const heard = [...lookers, left].map(({ child }) => new Promise((resolve) => child.stderr?.once("data", resolve)));
    await Promise.all(heard);
    await expect.poll(() => inspectRun(new Project(lab.project), "night").state.searchTrialsEnded, { timeout: 20_000 }).toBe(1);
    const second = await commandLine(lab, "resume", "night", "--detach").ended;
    expect([second.code, second.stdout, second.stderr]).toEqual([2, "", expect.stringContaining(`owned by process ${pid}`)]);
    left.child.kill("SIGINT");
    const gone = await left.ended;
    expect([gone.code, gone.stderr]).toEqual([130, expect.stringContaining("the run goes on")]);
    lab.open("go");
    for (const { code, stderr, stdout } of await Promise.all(lookers.map(({ ended }) => ended))) {
      expect([code, stdout, stderr]).toEqual([0, expect.stringContaining("night finished"), expect.anything()]);
      expect(stderr).toContain("t2");
    }
    const log = await commandLine(lab, "logs", "night", "-f").ended;
    expect(log.stdout).toMatch(/t1 +keep[\s\S]*t2 +keep[\s\S]*night finished/);
    expect(await lab.leftovers()).toEqual([]);
  });

  it("is not there: attach and logs say so", async () => {
    expect((await commandLine(lab, "run", lab.pack, "--name", "night", ...start, "--max-time", "1s").ended).code).toBe(0);
    const { code, stderr } = await commandLine(lab, "attach", "nobody").ended;
    expect([code, stderr]).toEqual([2, expect.stringContaining("the name of a run")]);
    expect((await commandLine(lab, "logs", "night").ended).stderr).toContain("never detached");
    const over = await commandLine(lab, "resume", "night", "--detach").ended;
    expect([over.code, over.stdout, over.stderr]).toEqual([
      2,
      "",
      expect.stringMatching(/a run that is not over; found night, which is finished.*`trialist extend night --reason …` goes on/),
    ]);
    expect((await commandLine(lab, "logs", "night").ended).stderr).toContain("never detached");
  });
});
