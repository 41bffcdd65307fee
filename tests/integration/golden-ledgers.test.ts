import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { importRun } from "../../src/app/transfer.js";
import { verifyRun } from "../../src/app/verify.js";

/** Ledgers that earlier builds wrote: every build reads them, folds them, and decides their verdicts again. Never edit one. */
const folder = new URL("../golden-ledgers", import.meta.url).pathname;

/** What each one holds; written down when it was recorded. */
const recorded: Readonly<Record<string, { phase: string; leader: string; retracted: string[]; statuses: Record<string, number> }>> = {
  "golden-1": { phase: "finished", leader: "t1", retracted: ["t4"], statuses: { keep: 2, discard: 7, crashed: 1 } },
  "golden-2": { phase: "finished", leader: "t1", retracted: ["t4"], statuses: { keep: 2, discard: 3, crashed: 1 } },
  // A language model: refused answers, a refused key and its resume, a note, a retraction.
  "golden-3": { phase: "finished", leader: "t3", retracted: ["t2"], statuses: { keep: 2, discard: 2 } },
  // A long session of a language model.
  "golden-4": { phase: "finished", leader: "t1", retracted: [], statuses: { keep: 1, discard: 1 } },
  // A fork of a run that was extended, with a retraction that its source made later, extended itself.
  "golden-forked": { phase: "finished", leader: "t4", retracted: ["t1"], statuses: { keep: 2, crashed: 1, discard: 2 } },
  // A reused calibration; the operator's queue, a held trial, one that was pinned and released, a retraction.
  "golden-steered": { phase: "finished", leader: "t2", retracted: ["t5"], statuses: { keep: 3, discard: 3 } },
};

const place = mkdtempSync(join(tmpdir(), "trialist-golden-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

describe("a ledger that an earlier build wrote", () => {
  const names = readdirSync(folder).filter((file) => file.endsWith(".jsonl"));

  it("is in the list of what was recorded", () => {
    expect(names.map((file) => file.replace(".jsonl", "")).sort()).toEqual(Object.keys(recorded).sort());
  });

  it.each(Object.entries(recorded))("%s is imported, verified and folded to what it was", async (name, was) => {
    const project = new Project(place);
    await importRun(project, join(folder, `${name}.jsonl`), name);
    expect(await verifyRun(project, name)).toMatchObject({ ok: true, problem: null });
    const run = inspectRun(project, name);
    expect(run.state.phase).toBe(was.phase);
    expect(run.state.leader?.trial).toBe(was.leader);
    expect(Object.values(run.state.trials).flatMap((trial) => (trial.retracted ? [trial.id] : []))).toEqual(was.retracted);
    expect(run.state.statuses).toEqual(was.statuses);
    run.close();
  });
});
