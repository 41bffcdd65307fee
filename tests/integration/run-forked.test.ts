import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import SqliteDatabase from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSealed } from "../../src/adapters/ledger/sealed.js";
import { openSqliteLedger } from "../../src/adapters/ledger/sqlite-ledger.js";
import { inspectRun } from "../../src/app/inspect.js";
import { operate } from "../../src/app/operate.js";
import { Project } from "../../src/app/project.js";
import { redecideRecorded, replayRecorded } from "../../src/app/replay.js";
import { secretsOf } from "../../src/app/secrets.js";
import { exportRun, importRun } from "../../src/app/transfer.js";
import { verifyRun } from "../../src/app/verify.js";
import type { RunState } from "../../src/core/harness/state.js";
import type { ProjectedEvent } from "../../src/core/protocol/projection.js";
import { commandLine, drive, driven } from "../support/drive.js";
import { Lab, numberPack, proposes, scoring, waiting } from "../support/lab.js";
import type { Report, Step } from "../support/run-driver.js";

const seed = 5;
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

const values = [300, 200, 500, 400, 700, 600];
const big = `# ${"x".repeat(80_000)}\n`;
function writePack(): void {
  const words = values.map((value) => proposes(scoring(value)));
  // One candidate is too large for the ledger itself: its file lies in the folder that all runs share.
  words[1] = proposes({ "main.sh": `${big}${scoring(200)["main.sh"]}` });
  lab.write(numberPack({ seed, words }));
}

function run(name: string, trials: number): Step[] {
  const budget = { trials, costUsd: null, tokens: null, computeMs: null, wallMs: 3_600_000 };
  const request = { seed, budget, organization: { name: "tree", configuration: { drafts: 50 } } };
  return [
    { do: "create", name, request },
    { do: "work", name },
  ];
}

const project = (): Project => new Project(lab.project);
function stateOf(name: string): RunState {
  const inspected = inspectRun(project(), name);
  inspected.close();
  return inspected.state;
}

interface Row {
  readonly sequence: number;
  readonly type: string;
}

/** Every column of every record, as it is stored. */
function rowsOf(name: string): Row[] {
  const db = new SqliteDatabase(join(project().existingRun(name), "ledger.sqlite"), { readonly: true });
  const rows = db.prepare<[], Row>("SELECT * FROM events ORDER BY sequence").all();
  db.close();
  return rows;
}

function science(report: Report | undefined): readonly ProjectedEvent[] {
  const ends = ["run.started", "run.finishing", "run.finished", "run.forked"];
  return ((report?.projection ?? []) as ProjectedEvent[]).filter(({ type }) => !ends.includes(type));
}

describe("a fork of a finished run", () => {
  it("at a trial: begins with its record to the byte, finds what it found, and stands on its own", async () => {
    writePack();
    const [source, forked] = await driven(lab, [
      ...run("source", 4),
      { do: "report", name: "source" },
      { do: "fork", name: "source", request: { at: "t2" } },
      { do: "work", name: "fork" },
      { do: "report", name: "fork" },
    ]);
    expect(forked).toMatchObject({ phase: "finished", reason: "budget: trials", verified: { ok: true, problem: null } });
    expect(science(forked)).toEqual(science(source));
    const { forkedFrom } = stateOf("fork");
    const place = forkedFrom?.sequence ?? 0;
    expect(rowsOf("fork").slice(0, place)).toEqual(rowsOf("source").slice(0, place));
    expect(rowsOf("fork")[place]?.type).toBe("run.forked");
    expect(forkedFrom).toMatchObject({ run: "source", trial: "t2", afterTrials: 2, inherited: { trials: 2 } });

    const replayed = await replayRecorded(project(), "fork", "again", secretsOf({}));
    expect(replayed).toMatchObject({ difference: null, taken: 0 });
    expect(replayed.chain.replayed).toBe(replayed.chain.recorded);
    expect(() => redecideRecorded(project(), "fork", {})).toThrow(/a fork of source/);

    const elsewhere = mkdtempSync(join(tmpdir(), "trialist-elsewhere-"));
    const file = join(elsewhere, "fork.jsonl");
    await exportRun(project(), "fork", file, true);
    await importRun(new Project(elsewhere), file, "fork");
    expect(await verifyRun(new Project(elsewhere), "fork")).toMatchObject({ ok: true });
    rmSync(elsewhere, { recursive: true });

    rmSync(project().existingRun("source"), { recursive: true });
    expect(await verifyRun(project(), "fork")).toMatchObject({ ok: true });
  });

  it("at its head: from the command line, with more room and another researcher", async () => {
    writePack();
    await driven(lab, run("source", 2));
    const { version } = stateOf("source");
    const none = await commandLine(lab, "fork", "source", "--name", "fork").ended;
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining("--max-trials") });
    expect(readdirSync(join(lab.project, ".trialist", "runs"))).toEqual(["source"]);
    const options = ["--max-trials", "+1", "--seed", "5", "--researcher", "command:sh ./answer.sh", "--reason", "why not"];
    const forked = await commandLine(lab, "fork", "source", "--name", "fork", ...options).ended;
    expect([forked.code, forked.stderr, forked.stdout]).toEqual([0, expect.stringContaining("t3"), expect.anything()]);
    expect(forked.stdout).toMatch(
      /Forked +from source after 2 trials \(its event \d+\): why not; inherited, and counted by the caps: 2\s+trials/,
    );
    expect(stateOf("source").version).toBe(version);
    expect(stateOf("fork")).toMatchObject({
      phase: "finished",
      searchTrialsEnded: 3,
      configuration: { run: "fork", researchers: { "*": "command:sh ./answer.sh" }, budget: { trials: 3 } },
    });
    const status = await commandLine(lab, "status", "fork", "--json").ended;
    expect(JSON.parse(status.stdout)).toMatchObject({
      run: "fork",
      forkedFrom: { run: "source", trial: null, reason: "why not", inherited: { trials: 2 } },
      spend: { trials: 3 },
    });
    expect((await commandLine(lab, "show", "fork").ended).stdout).toContain("Forked from source after 2 trials");
    expect((await commandLine(lab, "report", "fork").ended).stdout).toContain("Forked from source after 2 trials");
    // Forks of forks and extensions of forks go on like any run.
    const again = await commandLine(lab, "fork", "fork", "--name", "second", "--at", "t1", "--max-trials", "3", "--detach").ended;
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("goes on in process") });
    await expect.poll(() => stateOf("second").phase, { timeout: 20_000 }).toBe("finished");
    const extended = await commandLine(lab, "extend", "fork", "--max-trials", "+1", "--reason", "more").ended;
    expect(extended).toMatchObject({ code: 0 });
    expect((await commandLine(lab, "verify", "--all").ended).code).toBe(0);
    expect(await lab.leftovers()).toEqual([]);
  });

  it("knows of a retraction that came after its place", async () => {
    writePack();
    await driven(lab, run("source", 3));
    await operate(project(), "source", { type: "retract", trial: "t1", reason: "leaks" });
    await driven(lab, [{ do: "fork", name: "source", request: { at: "t2" } }]);
    expect(stateOf("fork").trials["t1"]).toMatchObject({ retracted: true });
    expect(stateOf("fork").leader?.trial).not.toBe("t1");
    expect(await replayRecorded(project(), "fork", null, secretsOf({}))).toMatchObject({ difference: null });
  });
});

describe("a fork of a run that somebody works on", () => {
  it("takes its record as it is, cancels what is open for itself, and leaves the source alone", async () => {
    const words = [proposes(scoring(300)), proposes(waiting("go", 500)), proposes(scoring(700))];
    lab.write(numberPack({ seed, words, rule: "any", gate: lab.gate, wall: "10 min" }));
    const owner = drive(lab, [...run("source", 2), { do: "report", name: "source" }]);
    await expect
      .poll(() => (project().runNames().includes("source") ? stateOf("source").openTrials : []), { timeout: 60_000 })
      .toEqual(["t2"]);
    const forked = await commandLine(lab, "fork", "source", "--name", "fork", "--max-trials", "+1").ended;
    expect([forked.code, forked.stderr]).toEqual([0, expect.stringContaining("t3")]);
    expect(stateOf("source").openTrials).toEqual(["t2"]);
    expect(stateOf("fork")).toMatchObject({ phase: "finished", statuses: { keep: 2, cancelled: 1 }, leader: { trial: "t3" } });
    lab.open("go");
    const [report] = (await owner.ended).reports;
    expect(report).toMatchObject({ phase: "finished", verified: { ok: true } });
    expect(stateOf("source")).toMatchObject({ statuses: { keep: 2 }, leader: { trial: "t2" } });
    expect(await verifyRun(project(), "fork")).toMatchObject({ ok: true });
    expect(await replayRecorded(project(), "fork", null, secretsOf({}))).toMatchObject({ difference: null });
  });
});

describe("a fork that is not made", () => {
  it("leaves nothing that is listed when its process is killed, and can be made again", async () => {
    writePack();
    await driven(lab, run("source", 1));
    for (const side of ["before", "after"] as const) {
      const { signal } = await drive(lab, [{ do: "fork", name: "source", request: { at: "t0" }, death: { side, append: 1 } }]).ended;
      expect(signal).toBe("SIGKILL");
    }
    expect(readdirSync(join(lab.project, ".trialist", "runs")).filter((name) => name.startsWith(".fork-"))).toHaveLength(2);
    const listed = await commandLine(lab, "list", "--json").ended;
    expect((JSON.parse(listed.stdout) as { run: string }[]).map((row) => row.run)).toEqual(["source"]);
    await driven(lab, [
      { do: "fork", name: "source", request: { at: "t0" } },
      { do: "work", name: "fork" },
    ]);
    expect(stateOf("fork")).toMatchObject({ phase: "finished", searchTrialsEnded: 1 });
  });

  it("is refused with what to do", async () => {
    writePack();
    await driven(lab, [...run("source", 1), ...run("young", 1).slice(0, 1)]);
    const fork = (...words: string[]) => commandLine(lab, "fork", ...words).ended;
    const refused = async (says: string, ...words: string[]) =>
      expect(await fork(...words)).toMatchObject({ code: 2, stderr: expect.stringContaining(says) });
    await refused("a name that no run", "source", "--name", "young");
    await refused("up to 64 letters", "source", "--name", "../x");
    await refused("nothing to inherit", "young", "--name", "fork");
    await refused("has ended", "source", "--name", "fork", "--at", "t9");
    await refused("needs --researcher", "source", "--name", "fork", "--role", "debug=reference");
    await refused("unknown option", "source", "--name", "fork", "--organization", "sessions");
    openSealed(project().existingRun("source")).close();
    await refused("--after-heldout-look", "source", "--name", "fork", "--max-trials", "+1");
    writeFileSync(join(lab.pack, "baseline", "main.sh"), "echo 7 > $TRIALIST_OUTPUT/out.txt\n");
    const looked = ["--after-heldout-look", "it was at t0", "--max-trials", "+1"];
    await refused("other files", "source", "--name", "fork", ...looked);
    expect(project().runNames()).toEqual(["source", "young"]);
    const made = await fork("source", "--name", "fork", "--frozen", ...looked);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining("FORKED AFTER A LOOK") });
  });
});

describe("a fork that says it came from elsewhere", () => {
  it("does not check out", async () => {
    writePack();
    await driven(lab, [...run("source", 1), { do: "fork", name: "source", request: { at: "t0" } }]);
    const source = openSqliteLedger(project().existingRun("fork"), { mode: "read", blobFolder: project().blobFolder });
    const forged = openSqliteLedger(project().runFolder("forged"), { mode: "create", blobFolder: project().blobFolder });
    for (const { at, type, version, data } of source.read()) {
      for (const blob of JSON.stringify(data).matchAll(/"blob":"([0-9a-f]{64})"/g)) forged.putBlob(source.blob(blob[1] ?? ""));
      const given = data as { from?: object };
      const changed = type === "run.forked" ? { ...given, from: { ...given.from, chain: "b".repeat(64) } } : data;
      forged.append(forged.head, at, [{ type, version, data: changed }]);
    }
    source.close();
    forged.close();
    expect((await verifyRun(project(), "forged")).problem).toMatch(/run\.forked.*a fork of another record/);
  });
});
