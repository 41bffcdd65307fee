import { execFileSync, spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import SqliteDatabase from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { acquireOwner } from "../../src/adapters/ledger/owner.js";
import { openSqliteLedger } from "../../src/adapters/ledger/sqlite-ledger.js";
import { verifyLedger } from "../../src/adapters/ledger/verify.js";
import type { Ledger } from "../../src/core/ports/ledger.js";
import {
  LedgerCorruptError,
  LedgerFullError,
  LedgerNotWritableError,
  LedgerSchemaError,
  LedgerUnavailableError,
} from "../../src/core/ports/ledger-errors.js";
import { ledgerContract, made } from "./ledger-contract.js";
import { largeBytes, largeDigest, Project } from "./ledger-fixture.js";

ledgerContract("ledger in SQLite", () => {
  const project = new Project();
  const open = () => project.open(existsSync(project.run) ? "own" : "create");
  const takeOver = () => {
    rmSync(join(project.run, "lock"));
    return project.open("own");
  };
  return { open, takeOver, dispose: () => project.remove() };
});

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.remove());

function corruption(read: () => unknown): LedgerCorruptError {
  try {
    read();
  } catch (error) {
    if (error instanceof LedgerCorruptError) return error;
    throw error;
  }
  throw new Error("nothing was noticed");
}

describe("opening", () => {
  it("refuses to create over a ledger, and to open none", () => {
    expect(() => project.open("own")).toThrow(LedgerUnavailableError);
    expect(() => project.open("read")).toThrow(/trialist list/);
    project.open("create").close();
    expect(() => project.open("create")).toThrow(/found one that exists/);
  });

  it.each(["own", "read"] as const)("refuses a newer schema to %s, and leaves the file alone", (mode) => {
    project.filled(2);
    project.tamper("INSERT INTO migrations VALUES (99, 'from the future', 0)");
    expect(() => project.open(mode)).toThrow(LedgerSchemaError);
    expect(() => project.open(mode)).toThrow(/schema 99.*Update trialist/);
  });

  it("refuses a foreign database and a file that is none", () => {
    mkdirSync(project.run, { recursive: true });
    const path = join(project.run, "ledger.sqlite");
    const foreign = new SqliteDatabase(path);
    foreign.exec("CREATE TABLE other (a)");
    foreign.close();
    expect(() => project.open("own")).toThrow(/foreign table other/);
    expect(() => project.open("read")).toThrow(LedgerSchemaError);
    writeFileSync(path, "no database at all, but long enough to be read as a header ".repeat(9));
    expect(() => project.open("own")).toThrow(LedgerCorruptError);
  });

  it("writes durably", () => {
    const ledger = project.open("create");
    ledger.append(0, 1, [made("a")]);
    ledger.heartbeat(1);
    const db = (ledger as unknown as { db: SqliteDatabase.Database }).db;
    expect([db.pragma("journal_mode", { simple: true }), db.pragma("synchronous", { simple: true })]).toEqual(["wal", 2]);
    ledger.close();
  });
});

describe("a damaged ledger", () => {
  const swap =
    "UPDATE events SET sequence = -1 WHERE sequence = 8; UPDATE events SET sequence = 8 WHERE sequence = 9; UPDATE events SET sequence = 9 WHERE sequence = -1";
  const renumber =
    "DELETE FROM events WHERE sequence = 8; UPDATE events SET sequence = sequence - 1 WHERE sequence > 8; UPDATE head SET sequence = 19";
  it.each<[string, string, number, string]>([
    ["data", "UPDATE events SET data = replace(data, '7', '8') WHERE sequence = 8", 8, "altered"],
    ["white space in data", "UPDATE events SET data = data || ' ' WHERE sequence = 8", 8, "altered"],
    ["a time", "UPDATE events SET at = 5 WHERE sequence = 1", 1, "altered"],
    ["a type", "UPDATE events SET type = 'x' WHERE sequence = 20", 20, "altered"],
    ["a chain value", `UPDATE events SET chain = '${"a".repeat(64)}' WHERE sequence = 8`, 8, "chain-altered"],
    ["the last chain value", `UPDATE events SET chain = '${"a".repeat(64)}' WHERE sequence = 20`, 20, "chain-altered"],
    ["a dropped record", "DELETE FROM events WHERE sequence = 8", 8, "dropped"],
    ["dropped records", "DELETE FROM events WHERE sequence BETWEEN 8 AND 12", 8, "dropped"],
    ["a dropped record, others renumbered", renumber, 8, "dropped"],
    ["a dropped end", "DELETE FROM events WHERE sequence > 15", 16, "truncated"],
    ["all dropped", "DELETE FROM events", 1, "truncated"],
    ["two records reordered", swap, 8, "reordered"],
    [
      "a record appended by nobody",
      "INSERT INTO events SELECT 21, at, type, version, data, chain FROM events WHERE sequence = 20",
      21,
      "altered",
    ],
    ["a head set back", "UPDATE head SET sequence = 10, chain = (SELECT chain FROM events WHERE sequence = 10)", 11, "altered"],
  ])("names the first bad record: %s", async (_what, sql, sequence, difference) => {
    project.filled();
    project.tamper(sql);
    const report = await verifyLedger(project.run, { blobFolder: project.blobFolder });
    expect(report.firstBad).toMatchObject({ sequence, kind: difference });
    expect(report).toMatchObject({ ok: false, events: sequence - 1 });
  });

  it("stops a reader at the bad record, after the good ones", () => {
    project.filled();
    project.tamper("UPDATE events SET data = '{}' WHERE sequence = 8");
    const ledger = project.open("own");
    const seen: number[] = [];
    const error = corruption(() => {
      for (const event of ledger.read()) seen.push(event.sequence);
    });
    expect([error.sequence, error.difference, seen.at(-1)]).toEqual([8, "altered", 7]);
    expect(error.message).toMatch(/ledger\.sqlite: expected event 8 to follow.*Do not resume/);
    ledger.close();
  });

  it("is not opened by an owner when its end is cut or changed", () => {
    project.filled();
    project.tamper("DELETE FROM events WHERE sequence = 20");
    expect(corruption(() => project.open("own")).sequence).toBe(20);
    expect(() => acquireOwner(project.run).release()).not.toThrow();
  });

  it("is noticed when bytes of the file are overwritten", async () => {
    project.filled(400);
    const path = join(project.run, "ledger.sqlite");
    const bytes = readFileSync(path);
    bytes.fill(0x5a, 4096 * 10, 4096 * 11);
    writeFileSync(path, bytes);
    const report = await verifyLedger(project.run, { blobFolder: project.blobFolder });
    expect(report.ok).toBe(false);
    expect(report.firstBad?.message).toMatch(/ledger\.sqlite/);
  });
});

describe("readers", () => {
  it("read while the owner writes, and may not write", () => {
    const owner = project.open("create");
    const reader = project.open("read");
    for (let head = 0; head < 500; head++) {
      owner.append(head, 1, [made("a", { head })]);
      if (head % 50 === 0) expect([...reader.read()]).toHaveLength(head + 1);
    }
    expect([reader.head, reader.chain]).toEqual([owner.head, owner.chain]);
    for (const write of [() => reader.append(500, 1, [made("b")]), () => reader.putBlob(Buffer.from("a")), () => reader.heartbeat(1)])
      expect(write).toThrow(LedgerNotWritableError);
    reader.close();
    owner.close();
  });

  it("hear of the owner's appends", async () => {
    const owner = project.open("create");
    const reader = project.open("read");
    const heard: number[] = [];
    const stop = reader.subscribe((events) => heard.push(...events.map((event) => event.sequence)));
    owner.append(
      0,
      1,
      Array.from({ length: 600 }, () => made("a")),
    );
    owner.heartbeat(5);
    await vi.waitFor(() => expect(heard).toHaveLength(600), { timeout: 3000 });
    expect(heard).toEqual(Array.from({ length: 600 }, (_, index) => index + 1));
    stop();
    owner.append(600, 1, [made("b")]);
    await sleep(500);
    expect(heard).toHaveLength(600);
    reader.close();
    owner.close();
  });

  it("hear why a subscription ended", async () => {
    project.filled();
    const errors: unknown[] = [];
    const reader = openSqliteLedger(project.run, {
      mode: "read",
      blobFolder: project.blobFolder,
      onSubscriptionError: (error) => errors.push(error),
    });
    reader.subscribe(() => undefined);
    project.tamper("INSERT INTO events VALUES (21, 1, 'a', 1, '{}', 'x'); UPDATE head SET sequence = 21, chain = 'x'");
    await vi.waitFor(() => expect(errors).toHaveLength(1), { timeout: 3000 });
    expect(errors[0]).toBeInstanceOf(LedgerCorruptError);
    reader.close();
  });
});

describe("an owner that dies", () => {
  it("leaves a prefix that the next one goes on from, every time", { timeout: 60_000 }, async () => {
    const script = join(import.meta.dirname, "ledger-appender.ts");
    let head = 0;
    for (let round = 0; round < 5; round++) {
      const child = spawn(process.execPath, ["--import", "tsx", script, project.run, project.blobFolder], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      let acknowledged = head;
      let rest = "";
      child.stdout.on("data", (chunk: Buffer) => {
        const lines = (rest + chunk.toString()).split("\n");
        rest = lines.pop() ?? "";
        acknowledged = Number(lines.at(-1) ?? acknowledged);
      });
      await vi.waitFor(() => expect(acknowledged).toBeGreaterThan(head + 40), { timeout: 20_000, interval: 5 });
      child.kill("SIGKILL");
      await new Promise((done) => child.once("close", done));
      const report = await verifyLedger(project.run, { blobFolder: project.blobFolder });
      expect(report).toMatchObject({ ok: true, problems: [] });
      expect(report.head).toBeGreaterThanOrEqual(acknowledged);
      const reader = project.open("read");
      expect([...reader.read()].every((event) => (event.data as { n: number }).n === event.sequence)).toBe(true);
      reader.close();
      head = report.head;
    }
    const owner = project.open("own");
    owner.append(head, 1, [made("a")]);
    owner.close();
  });

  it("leaves an unnamed blob file at most, when it dies between blob and event", async () => {
    const owner = project.open("create");
    owner.putBlob(largeBytes);
    owner.close();
    expect(existsSync(join(project.blobFolder, largeDigest.slice(0, 2), largeDigest.slice(2)))).toBe(true);
    const report = await verifyLedger(project.run, { blobFolder: project.blobFolder });
    expect(report).toMatchObject({ ok: true, events: 0, blobs: { checked: 0 } });
  });
});

describe("a full disk", () => {
  const mayMount = process.platform === "linux" && process.getuid?.() === 0 && canMount();

  it("stops an append by the database's page limit and records nothing of it", () => {
    const ledger = project.open("create");
    const db = (ledger as unknown as { db: SqliteDatabase.Database }).db;
    ledger.append(0, 1, [made("a")]);
    db.pragma(`max_page_count = ${db.pragma("page_count", { simple: true }) as number}`);
    const { chain } = ledger;
    const big = Array.from({ length: 50 }, () => made("b", { text: "x".repeat(1000) }));
    expect(() => ledger.append(1, 1, big, [{ digest: largeDigest, bytes: largeBytes }])).toThrow(LedgerFullError);
    expect([ledger.head, ledger.chain, [...ledger.read()].length]).toEqual([1, chain, 1]);
    db.pragma("max_page_count = 1000000");
    ledger.append(1, 1, big);
    expect([...ledger.read()]).toHaveLength(51);
    ledger.close();
  });

  it.runIf(mayMount)("stops events and blob files on a real one; the ledger is usable when there is room again", async () => {
    const folder = join(project.folder, "small");
    mkdirSync(folder);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", folder]);
    const [run, blobFolder] = [join(folder, "runs", "first"), join(folder, "blobs")];
    const ledger = openSqliteLedger(run, { mode: "create", blobFolder });
    try {
      const hoard = join(folder, "hoard");
      writeFileSync(hoard, Buffer.alloc(1024 * 1024));
      expect(() => ledger.putBlob(Buffer.alloc(3_000_000))).toThrow(LedgerFullError);
      expect(readdirSync(join(blobFolder, "tmp"))).toEqual([]);
      const head = fillUp(ledger);
      expect(statfsSync(folder).bavail).toBeLessThan(20);
      expect([ledger.head, [...ledger.read()].length]).toEqual([head, head]);
      rmSync(hoard);
      ledger.append(head, 1, [made("b", { blob: ledger.putBlob(Buffer.alloc(100_000)), bytes: 100_000 })]);
      ledger.close();
      expect(await verifyLedger(run, { blobFolder })).toMatchObject({ ok: true, events: head + 1 });
    } finally {
      ledger.close();
      execFileSync("umount", [folder]);
    }
  });

  it.runIf(mayMount)("stops an owner that opens the ledger there, which then is no stranger's", () => {
    const folder = join(project.folder, "small");
    mkdirSync(folder);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]);
    const [run, blobFolder] = [join(folder, "runs", "first"), join(folder, "blobs")];
    try {
      openSqliteLedger(run, { mode: "create", blobFolder }).close();
      const owner = acquireOwner(run);
      // With the files of SQLite beside it, so that nothing but the commit of the new epoch needs room.
      const reader = openSqliteLedger(run, { mode: "read", blobFolder });
      expect([...reader.read()]).toEqual([]);
      spawnSync("sh", ["-c", "cat /dev/zero > hoard"], { cwd: folder });
      expect(() => openSqliteLedger(run, { mode: "own", blobFolder, owner })).toThrow(LedgerFullError);
      rmSync(join(folder, "hoard"));
      const ledger = openSqliteLedger(run, { mode: "own", blobFolder, owner });
      expect(ledger.append(0, 1, [made("a")])).toHaveLength(1);
      ledger.close();
      reader.close();
      owner.release();
    } finally {
      execFileSync("umount", ["-l", folder]);
    }
  });

  function fillUp(ledger: Ledger): number {
    for (let head = 0; ; head++) {
      try {
        ledger.append(head, 1, [made("a", { text: "x".repeat(3000) })]);
      } catch (error) {
        expect(error).toBeInstanceOf(LedgerFullError);
        expect((error as LedgerFullError).message).toMatch(/full disk.*Free space/);
        return head;
      }
    }
  }

  function canMount(): boolean {
    return spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status === 0;
  }
});

describe("a long ledger", () => {
  it("is read in flat memory", { timeout: 60_000 }, () => {
    const ledger = project.open("create");
    const events = Array.from({ length: 2000 }, (_, index) => made("trial.stage-ended", { index, text: "x".repeat(600) }));
    for (let head = 0; head < 40_000; head += 2000) ledger.append(head, 1, events);
    expect(statSync(join(project.run, "ledger.sqlite-wal")).size).toBeLessThan(80 * 1024 * 1024);
    const before = process.memoryUsage();
    let most = 0;
    for (const event of ledger.read()) if (event.sequence % 1000 === 0) most = Math.max(most, process.memoryUsage().heapUsed);
    expect(most - before.heapUsed).toBeLessThan(60 * 1024 * 1024);
    ledger.close();
  });

  it("can be copied while it is closed", () => {
    project.filled();
    const copy = join(project.folder, "runs", "copy");
    mkdirSync(copy);
    copyFileSync(join(project.run, "ledger.sqlite"), join(copy, "ledger.sqlite"));
    const ledger = project.open("read", copy);
    expect([...ledger.read()]).toHaveLength(20);
    ledger.close();
  });
});
