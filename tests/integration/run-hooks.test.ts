import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { commandLine, commandLineWith, drive } from "../support/drive.js";
import { Lab, numberPack, proposes, scoring, waiting } from "../support/lab.js";

/** What an operator's commands hear of a run, and that nothing they do reaches it. */
const seed = 5;
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

interface Heard {
  readonly event: string;
  readonly happened: string;
  readonly sequence: number;
  readonly best: { readonly trial: string; readonly value: number; readonly hypothesis: string };
  readonly [member: string]: unknown;
}

const starts = ["--name", "night", "--seed", String(seed), "--drafts", "50", "--researcher", "command:sh answer.sh"];
const listens = 'cat >> "$PWD/heard"; echo , >> "$PWD/heard"';

/** Every document that hooks wrote down, in order. */
function heard(): Heard[] {
  const file = join(lab.project, "heard");
  return existsSync(file) ? (JSON.parse(`[${readFileSync(file, "utf8").replace(/,\n$/, "")}]`) as Heard[]) : [];
}

function log(): string {
  return readFileSync(join(new Project(lab.project).runFolder("night"), "hooks.log"), "utf8");
}

function configure(text: string): void {
  writeFileSync(join(lab.project, "trialist.config.yaml"), text);
}

function pack(...words: string[]): void {
  lab.write(numberPack({ seed, words, rule: "any", gate: lab.gate, wall: "10 min" }));
}

describe("hooks", () => {
  it("hear of every new best and of the end, in order, with what a person wants to know", async () => {
    const hostile = "$(touch pwned) `touch pwned`; touch pwned \u001b[2J";
    pack(proposes(scoring(300), hostile), proposes(scoring(200)), proposes(scoring(500)));
    configure(
      `on:\n  best: ${JSON.stringify(listens)}\n  finished: "env > variables; ${listens.replaceAll('"', '\\"')}; echo said; exit 7"\n`,
    );
    const variables = { SOME_API_KEY: "a-key-that-is-secret", HIDDEN_IN: "https://a-key-that-is-secret@example.org", HARMLESS: "yes" };
    const { code, stderr, stdout } = await commandLineWith(lab, variables, "run", lab.pack, ...starts, "--max-trials", "3", "--json").ended;
    expect([code, stderr]).toEqual([0, expect.stringMatching(/the hook for finished: exit code 7; the run goes on/)]);
    expect(JSON.parse(stdout)).toMatchObject({ state: "finished" });

    const documents = heard();
    expect(documents.map(({ event, happened, best }) => [event, happened, best.trial])).toEqual([
      ["best", "promotion", "t1"],
      ["best", "promotion", "t3"],
      ["finished", "finished", "t3"],
    ]);
    expect(documents[0]?.best.hypothesis).toBe(hostile);
    expect(documents[2]).toMatchObject({
      schema: "trialist/hook@1",
      run: "night",
      folder: lab.project,
      state: "finished",
      metric: { name: "score", direction: "maximize", selfReported: false },
      baseline: { n: 2 },
      best: { selfReported: false, overBaseline: { lower: null }, restsOnRetracted: [] },
      progress: { done: 3, cap: 3, open: 0 },
      spend: { costUsd: 0 },
      report: `trialist report night -C ${lab.project}`,
    });
    expect(existsSync(join(lab.project, "pwned"))).toBe(false);
    const seen = readFileSync(join(lab.project, "variables"), "utf8");
    expect(seen).toContain("HARMLESS=yes");
    expect(seen).not.toContain("a-key-that-is-secret");
    expect(log()).toMatch(/best #\d+: exit code 0[\s\S]*finished #\d+: exit code 7, .*\n {2}said\n$/);
  });

  it("given on the command line hold for a detached run too, and are in no record of it", async () => {
    pack(proposes(scoring(300)), "echo no answer >&2; exit 1\n");
    configure(`on: { best: "echo of the file" }\n`);
    const words = ["--max-trials", "2", "--detach", "--on", "best=", "--on", `suspended=${listens}`];
    expect((await commandLine(lab, "run", lab.pack, ...starts, ...words).ended).code).toBe(0);
    await expect
      .poll(heard, { timeout: 60_000 })
      .toMatchObject([{ event: "suspended", state: "suspended", todo: expect.stringMatching(/./) }]);
    expect(await lab.leftovers()).toEqual([]);
    const told = await commandLine(lab, "export", "night", "--out", "night.jsonl").ended;
    expect([told.code, readFileSync(join(lab.project, "night.jsonl"), "utf8")]).toEqual([0, expect.not.stringContaining("heard")]);
    expect(log()).not.toContain("best #");

    // Nobody has the run: whoever ends it tells.
    const more = ["cancel", "night", "--reason", "the test is over"];
    expect((await commandLine(lab, "resume", "night", "--on", "suspended=true", "--on", `finished=${listens}`).ended).code).toBe(4);
    expect((await commandLine(lab, ...more).ended).code).toBe(0);
    expect(heard().map(({ event, happened }) => [event, happened])).toEqual([
      ["suspended", "suspended"],
      ["finished", "cancelled"],
    ]);
  });

  it("hear that nothing has ended for too long, and can do something about it", async () => {
    pack(proposes(waiting("end", 300)));
    const words = ["--max-trials", "1", "--stalled-after", "3s", "--on", `stalled=${listens}; touch ${lab.gate}/end`];
    expect((await commandLine(lab, "run", lab.pack, ...starts, ...words).ended).code).toBe(0);
    expect(heard()).toMatchObject([{ event: "stalled", state: "searching", progress: { open: 1 } }]);
  });

  it("killed with their trialist are told again; of several new bests the newest alone; and nothing after that", async () => {
    pack(proposes(scoring(300)), proposes(scoring(400)), proposes(scoring(500)));
    // Hangs until the test lets it go on, in which case it has heard.
    const hangs = `until [ -e ${lab.gate}/hear ]; do touch ${lab.gate}/hangs; sleep 0.1; done; ${listens}`;
    configure(`on: { best: ${JSON.stringify(hangs)}, finished: ${JSON.stringify(hangs)} }\n`);
    const request = { seed, organization: { name: "tree", configuration: { drafts: 50 } }, budget: budget(3) };
    const steps = [{ do: "create", name: "night", request } as const, { do: "work", name: "night" } as const];
    const driven = drive(lab, steps);
    const phase = (): string => inspectRun(new Project(lab.project), "night").state.phase;
    await expect.poll(() => existsSync(join(lab.gate, "hangs")), { timeout: 60_000 }).toBe(true);
    // It does not delay the run, nor does it keep its process for ever.
    await expect.poll(phase, { timeout: 60_000 }).toBe("finished");
    driven.child.kill("SIGKILL");
    await driven.ended;
    for (const { pid } of lab.processes(lab.gate)) process.kill(pid, "SIGKILL");
    expect(heard()).toEqual([]);
    lab.open("hear");
    for (let time = 1; time <= 2; time++) {
      const { code, stderr } = await commandLine(lab, "resume", "night").ended;
      expect([code, stderr]).toEqual([2, expect.stringContaining("finished")]);
      expect(heard().map(({ event, best }) => [event, best.trial])).toEqual([
        ["best", "t3"],
        ["finished", "t3"],
      ]);
    }
    expect(await lab.leftovers()).toEqual([]);
  });

  it("are refused where they are none", async () => {
    pack(proposes(scoring(300)));
    for (const word of ["finished", "ended=true", "=true"]) {
      const { code, stderr } = await commandLine(lab, "run", lab.pack, ...starts, "--on", word).ended;
      expect([code, stderr]).toEqual([2, expect.stringContaining("finished, suspended, best, stalled")]);
    }
    for (const text of ["on: { ended: 'true' }", "on: { best: 'true' }\nstalled_after: 60", "on: { best: 'true' }\nstalled_after: 60 d"]) {
      configure(text);
      const { code, stderr } = await commandLine(lab, "run", lab.pack, ...starts).ended;
      expect([code, stderr]).toEqual([2, expect.stringMatching(/on|stalled_after/)]);
    }
  });
});

function budget(trials: number) {
  return { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null };
}
