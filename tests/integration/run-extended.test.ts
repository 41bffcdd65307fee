import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSealed } from "../../src/adapters/ledger/sealed.js";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { redecideRecorded, replayRecorded } from "../../src/app/replay.js";
import { secretsOf } from "../../src/app/secrets.js";
import { exportRun, importRun } from "../../src/app/transfer.js";
import { verifyRun } from "../../src/app/verify.js";
import type { ProjectedEvent } from "../../src/core/protocol/projection.js";
import { commandLine, driven } from "../support/drive.js";
import { Lab, numberPack, proposes, scoring } from "../support/lab.js";
import type { Report, Step } from "../support/run-driver.js";

const seed = 5;
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
  const words = [300, 200, 500, 400, 700].map((value) => proposes(scoring(value)));
  lab.write(numberPack({ seed, words: [words[0] ?? "", proposes({ "main.sh": "exit 3\n" }), ...words.slice(1)] }));
});
afterEach(() => lab.remove());

function create(name: string, trials: number): Step[] {
  const budget = { trials, costUsd: null, tokens: null, computeMs: null, wallMs: 3_600_000 };
  const request = { seed, budget, organization: { name: "tree", configuration: { drafts: 50 } } };
  return [
    { do: "create", name, request },
    { do: "work", name },
  ];
}

const more = (name: string, trials: number): Step[] => [
  { do: "extend", name, request: { caps: { trials: { more: trials } } } },
  { do: "work", name },
];

/** The story without its ends, which differ, and without the caps of its start. */
function science(report: Report | undefined): readonly ProjectedEvent[] {
  const ends = ["run.started", "run.finishing", "run.finished", "run.extended", "operator.acted"];
  return ((report?.projection ?? []) as ProjectedEvent[]).filter(({ type }) => !ends.includes(type));
}

function stateOf(name: string): ReturnType<typeof inspectRun>["state"] {
  const inspected = inspectRun(new Project(lab.project), name);
  inspected.close();
  return inspected.state;
}

describe("a run that was extended twice", () => {
  it("is the run with the larger budget, and everything that reads a ledger reads it", async () => {
    const [whole, parts] = await driven(lab, [
      ...create("whole", 6),
      { do: "report", name: "whole" },
      ...create("parts", 2),
      ...more("parts", 1),
      ...more("parts", 3),
      { do: "report", name: "parts" },
    ]);
    expect(whole).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(parts).toMatchObject({ phase: "finished", verified: { ok: true, problem: null } });
    expect(science(parts)).toEqual(science(whole));

    const project = new Project(lab.project);
    const replayed = await replayRecorded(project, "parts", "again", secretsOf({}));
    expect(replayed).toMatchObject({ difference: null, taken: 0 });
    expect(replayed.chain.replayed).toBe(replayed.chain.recorded);
    const { leader, statuses, phase } = stateOf("parts");
    expect(redecideRecorded(project, "parts", {})).toMatchObject({ notOnRecord: null, trials: 6, phase, leader, statuses });

    const file = join(lab.folder, "parts.jsonl");
    await exportRun(project, "parts", file, true);
    const elsewhere = mkdtempSync(join(tmpdir(), "trialist-elsewhere-"));
    await importRun(new Project(elsewhere), file, "parts");
    expect(await verifyRun(new Project(elsewhere), "parts")).toMatchObject({ ok: true });
    rmSync(elsewhere, { recursive: true });

    const report = await commandLine(lab, "report", "parts").ended;
    expect([report.code, report.stderr]).toEqual([0, expect.anything()]);
    expect(report.stdout).toContain("Extended after 2 trials");
    expect(report.stdout).toContain("- extend: the test wants more");
    const status = await commandLine(lab, "status", "parts", "--json").ended;
    const told = { afterTrials: expect.any(Number), reason: "the test wants more", afterHeldoutLook: null };
    expect(JSON.parse(status.stdout)).toMatchObject({ state: "finished", extensions: [told, told], progress: { done: 6, cap: 6 } });
  });
});

describe("trialist extend", () => {
  it("goes on at once, or in a process of its own, and after a death `resume` does", async () => {
    await driven(lab, create("run", 1));
    const { code, stdout, stderr } = await commandLine(lab, "extend", "run", "--max-trials", "+1", "--reason", "one more").ended;
    expect([code, stdout, stderr]).toEqual([0, expect.stringContaining("run finished"), expect.stringContaining("t2")]);
    const detached = await commandLine(lab, "extend", "run", "--max-trials", "3", "--reason", "two more", "--detach").ended;
    expect([detached.code, detached.stdout]).toEqual([0, expect.stringContaining("goes on in process")]);
    await expect.poll(() => stateOf("run").phase, { timeout: 20_000 }).toBe("finished");
    // Recorded by a process that ended before it measured anything.
    await driven(lab, [{ do: "extend", name: "run", request: { caps: { trials: { total: 4 } } } }]);
    expect(stateOf("run").phase).toBe("searching");
    expect((await commandLine(lab, "resume", "run").ended).code).toBe(0);
    expect(stateOf("run")).toMatchObject({ phase: "finished", searchTrialsEnded: 4, budget: { spent: { trials: 4 } } });
    expect(await lab.leftovers()).toEqual([]);
  });

  it("is refused with what to do: no room, changed files, a cancelled run", async () => {
    await driven(lab, create("run", 1));
    const extend = (...words: string[]) => commandLine(lab, "extend", "run", "--reason", "more", ...words).ended;
    const before = stateOf("run").version;
    expect(await extend()).toMatchObject({ code: 2, stderr: expect.stringContaining("--max-trials") });
    expect(await extend("--max-trials", "none", "--max-time", "1ms")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--max-time"),
    });
    expect(await extend("--max-trials", "+x")).toMatchObject({ code: 2, stderr: expect.stringContaining("a whole number") });

    writeFileSync(join(lab.pack, "baseline", "main.sh"), "echo 7 > $TRIALIST_OUTPUT/out.txt\n");
    const changed = await extend("--max-trials", "+1");
    expect(changed).toMatchObject({ code: 2, stderr: expect.stringContaining("other files") });
    expect(changed.stderr).toContain("trialist extend run --frozen");
    expect(stateOf("run").version).toBe(before);
    expect(await extend("--max-trials", "+1", "--frozen")).toMatchObject({ code: 0 });

    await driven(lab, create("gone", 1).slice(0, 1));
    await commandLine(lab, "cancel", "gone", "--reason", "wrong").ended;
    const cancelled = await commandLine(lab, "extend", "gone", "--max-trials", "+1", "--reason", "more").ended;
    expect(cancelled).toMatchObject({ code: 2, stderr: expect.stringContaining("stays over") });
  });

  it("asks for a word after a look at held-out data, and says for ever that there was one", async () => {
    await driven(lab, create("run", 1));
    openSealed(new Project(lab.project).existingRun("run")).close();
    const extend = (...words: string[]) => commandLine(lab, "extend", "run", "--max-trials", "+1", "--reason", "more", ...words).ended;
    const refused = await extend();
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("--after-heldout-look") });
    expect(await extend("--after-heldout-look", " ")).toMatchObject({ code: 2 });
    const told = await extend("--after-heldout-look", "the look was at t0 alone");
    expect(told).toMatchObject({ code: 0, stdout: expect.stringContaining("EXTENDED AFTER A LOOK") });
    expect(stateOf("run").extensions).toEqual([{ afterTrials: 1, reason: "more", afterHeldoutLook: "the look was at t0 alone" }]);
    expect((await commandLine(lab, "report", "run").ended).stdout).toContain("EXTENDED AFTER A LOOK");
  });
});
