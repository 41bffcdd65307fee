import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { verifyLedger } from "../../src/adapters/ledger/verify.js";
import { digestOf } from "../../src/core/protocol/canonical.js";
import { made } from "./ledger-contract.js";
import { largeDigest, Project, smallDigest } from "./ledger-fixture.js";

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.remove());

const verify = () => verifyLedger(project.run, { blobFolder: project.blobFolder });
const largePath = (): string => join(project.blobFolder, largeDigest.slice(0, 2), largeDigest.slice(2));
const pythonDigest = digestOf('print("b.py")');

it("finds a sound ledger sound, and counts what it looked at", async () => {
  const { chain } = project.filled();
  expect(await verify()).toEqual({
    ok: true,
    events: 20,
    head: 20,
    chain,
    blobs: { checked: 5, bytes: expect.any(Number), pruned: 0 },
    firstBad: null,
    problems: [],
    problemCount: 0,
  });
});

it("verifies beside a living owner, and an empty ledger", async () => {
  const ledger = project.open("create");
  expect(await verify()).toMatchObject({ ok: true, events: 0 });
  ledger.append(0, 1, [made("a")]);
  expect(await verify()).toMatchObject({ ok: true, events: 1 });
  ledger.close();
});

it("names an altered small blob by the event that named it first", async () => {
  project.filled();
  project.tamper("UPDATE blobs SET bytes = CAST('smalL' AS BLOB) WHERE digest = ?", smallDigest);
  expect((await verify()).firstBad).toMatchObject({ kind: "blob-corrupt", sequence: 5, digest: smallDigest });
});

it("names an altered, a missing, and an unreadable large blob", async () => {
  project.filled();
  chmodSync(largePath(), 0o644);
  writeFileSync(largePath(), "other");
  expect((await verify()).firstBad).toMatchObject({ kind: "blob-corrupt", sequence: 6, digest: largeDigest });
  rmSync(largePath());
  expect((await verify()).firstBad).toMatchObject({ kind: "blob-missing", sequence: 6, digest: largeDigest });
});

it("looks for the files of a manifest", async () => {
  project.filled();
  project.tamper("DELETE FROM blobs WHERE digest = ?", pythonDigest);
  expect(await verify()).toMatchObject({ problemCount: 1, firstBad: { kind: "blob-missing", sequence: 7, digest: pythonDigest } });
});

it("finds a manifest that is none, and a size that does not fit", async () => {
  const ledger = project.open("create");
  const blob = ledger.putBlob(Buffer.from("{}"));
  ledger.append(0, 1, [made("a", { blob, bytes: 3, manifest: true })]);
  ledger.close();
  expect((await verify()).problems.map((problem) => problem.kind)).toEqual(["blob-size", "manifest-invalid"]);
});

it("accepts the gaps that an event lists, and no others", async () => {
  project.filled();
  rmSync(largePath());
  project.tamper("DELETE FROM blobs WHERE digest = ?", smallDigest);
  const ledger = project.open("own");
  ledger.append(20, 1, [made("run.blobs_pruned", { digests: [largeDigest] })]);
  ledger.close();
  expect(await verify()).toMatchObject({ ok: false, problemCount: 1, blobs: { pruned: 1 }, firstBad: { digest: smallDigest } });
});

it("asks its caller about every event", async () => {
  project.filled();
  const checkEvent = ({ sequence }: { sequence: number }): string | null => {
    if (sequence === 9) throw new Error("of an unknown type");
    return sequence > 15 ? "from a newer version" : null;
  };
  const report = await verifyLedger(project.run, { blobFolder: project.blobFolder, checkEvent });
  expect(report).toMatchObject({ ok: false, events: 20, problemCount: 6, firstBad: { kind: "event-refused", sequence: 9 } });
  expect(report.firstBad?.message).toMatch(/event 9 \(trial\.ended, version 1\): of an unknown type/);
});

it("keeps the first hundred problems and counts the others", async () => {
  project.filled(150);
  const report = await verifyLedger(project.run, { blobFolder: project.blobFolder, checkEvent: () => "no" });
  expect([report.problems.length, report.problemCount]).toEqual([100, 150]);
});
