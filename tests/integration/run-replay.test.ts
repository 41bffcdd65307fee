import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSqliteLedger } from "../../src/adapters/ledger/sqlite-ledger.js";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { redecideRecorded, replayRecorded } from "../../src/app/replay.js";
import { secretsOf } from "../../src/app/secrets.js";
import { exportRun, importRun } from "../../src/app/transfer.js";
import { verifyRun } from "../../src/app/verify.js";
import { driven } from "../support/drive.js";
import { Lab, numberPack, prints, proposes, scoring } from "../support/lab.js";

const seed = 11;
let lab: Lab;
let fresh: string;

beforeEach(() => {
  lab = new Lab();
  fresh = mkdtempSync(join(tmpdir(), "trialist-fresh-"));
});
afterEach(() => {
  lab.remove();
  rmSync(fresh, { recursive: true, force: true });
});

/** A run with keeps, a crash, refusals, a failed call and confirmations, brought to a fresh folder. */
async function recorded(): Promise<Project> {
  lab.write(
    numberPack({
      seed,
      words: [
        proposes(scoring(300)),
        { 1: prints("no"), 2: "exit 3\n", 3: proposes({ "main.sh": "exit 1\n" }) },
        proposes(scoring(200)),
        proposes(scoring(900)),
      ],
    }),
  );
  const request = {
    seed,
    budget: { trials: 4, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    organization: { name: "tree", configuration: { drafts: 200 } },
  };
  await driven(lab, [
    { do: "create", name: "run", request },
    { do: "work", name: "run" },
  ]);
  const file = join(lab.folder, "run.jsonl");
  await exportRun(new Project(lab.project), "run", file, true);
  const project = new Project(fresh);
  await importRun(project, file, "run");
  return project;
}

describe("a recorded run in a fresh folder", () => {
  it("is decided again, to the byte, and the replay is a run that checks out", async () => {
    const project = await recorded();
    const report = await replayRecorded(project, "run", "again", secretsOf({}));
    expect(report).toMatchObject({ difference: null, taken: 0, otherViews: 0 });
    expect(report.calls).toBeGreaterThanOrEqual(6);
    expect(report.chain.replayed).toBe(report.chain.recorded);
    expect(await verifyRun(project, "again")).toMatchObject({ ok: true, chain: report.chain.recorded });
  });

  it("differs at the first event that somebody changed, and says how", async () => {
    const project = await recorded();
    const source = openSqliteLedger(project.existingRun("run"), { mode: "read", blobFolder: project.blobFolder });
    const events = [...source.read()];
    const place = events.findIndex((event) => event.type === "trial.ended" && (event.data as { trial: string }).trial === "t3");
    const forged = openSqliteLedger(project.runFolder("forged"), { mode: "create", blobFolder: project.blobFolder });
    for (const [index, { at, type, version, data }] of events.entries()) {
      for (const blob of JSON.stringify(data).matchAll(/"blob":"([0-9a-f]{64})"/g)) forged.putBlob(source.blob(blob[1] ?? ""));
      for (const file of JSON.stringify(data).includes('"manifest":true') ? filesIn(source, data) : []) forged.putBlob(source.blob(file));
      const changed = index === place ? { ...(data as object), status: "keep" } : data;
      forged.append(forged.head, at, [{ type, version, data: changed }]);
    }
    source.close();
    forged.close();
    const report = await replayRecorded(project, "forged", null, secretsOf({}));
    expect(report.difference?.sequence).toBe(place + 1);
    expect(report.difference?.message).toMatch(/adjudicate: trial\.ended differs/);
  });
});

describe("a recorded run under another policy", () => {
  it("comes to the same end when nothing that matters is changed, and stops at the first question that is not on record", async () => {
    const project = await recorded();
    const source = inspectRun(project, "run");
    const { leader, statuses, phase } = source.state;
    source.close();
    const same = redecideRecorded(project, "run", { organization: { name: "tree", configuration: { drafts: 100 } } });
    expect(same).toMatchObject({ notOnRecord: null, phase, leader, statuses });

    const other = redecideRecorded(project, "run", { organization: { name: "tree", configuration: { drafts: 1 } } });
    expect(other).toMatchObject({ trials: 1, phase: "searching", notOnRecord: "c2, improve from t1" });

    const any = redecideRecorded(project, "run", { promotion: { rule: "any" } });
    // Under this rule the best has another value, which the next question shows: nobody was asked that.
    expect(any).toMatchObject({ trials: 1, notOnRecord: "c2, draft from t0" });
  });
});

describe("a record that somebody added to", () => {
  it("is a difference, not taken for granted", async () => {
    const project = new Project(fresh);
    await importRun(project, join(new URL("../golden-ledgers", import.meta.url).pathname, "golden-2.jsonl"), "forged");
    const ledger = openSqliteLedger(project.existingRun("forged"), { mode: "own", blobFolder: project.blobFolder });
    const data = { trial: "t2", previous: "t1", estimate: { score: 1e9 }, cause: "promotion" };
    ledger.append(ledger.head, 1, [{ type: "leader.changed", version: 1, data }]);
    ledger.close();
    const { difference } = await replayRecorded(project, "forged", null, secretsOf({}));
    expect(difference?.message).toMatch(/leader\.changed is on record, and nothing that is on record causes it/);
  });
});

function filesIn(source: { blob(digest: string): Uint8Array }, data: unknown): string[] {
  const { candidate } = data as { candidate: { blob: string } };
  const { files } = JSON.parse(Buffer.from(source.blob(candidate.blob)).toString("utf8")) as { files: { digest: string }[] };
  return files.map(({ digest }) => digest);
}

describe("a ledger that an earlier build wrote", () => {
  const folder = new URL("../golden-ledgers", import.meta.url).pathname;
  it.each(readdirSync(folder).map((file) => file.replace(".jsonl", "")))("%s is decided again as it was", async (name) => {
    const project = new Project(fresh);
    await importRun(project, join(folder, `${name}.jsonl`), name);
    expect(await replayRecorded(project, name, null, secretsOf({}))).toMatchObject({ difference: null, taken: 0 });
  });
});
