import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exportLedger } from "../../src/adapters/ledger/export-ledger.js";
import { ImportRefusedError, importLedger } from "../../src/adapters/ledger/import-ledger.js";
import { LineRefusedError } from "../../src/adapters/ledger/lines.js";
import { verifyLedger } from "../../src/adapters/ledger/verify.js";
import { LedgerCorruptError, LedgerUnavailableError } from "../../src/core/ports/ledger-errors.js";
import { digestOf } from "../../src/core/protocol/canonical.js";
import { made } from "./ledger-contract.js";
import { largeDigest, Project } from "./ledger-fixture.js";

let from: Project;
let to: Project;
beforeEach(() => {
  from = new Project();
  to = new Project();
});
afterEach(() => {
  from.remove();
  to.remove();
});

const file = (): string => join(from.folder, "export.jsonl");
const exported = async (options = {}) => exportLedger(from.run, file(), { blobFolder: from.blobFolder, ...options });
const imported = async (source: string | Readable = file()) => importLedger(source, to.run, { blobFolder: to.blobFolder });

describe("a round trip", () => {
  it("gives the same ledger", async () => {
    const { chain } = from.filled(1500);
    expect(await exported()).toMatchObject({ events: 1500, chain, blobs: 5 });
    expect(await imported()).toMatchObject({ run: "first", events: 1500, chain, blobs: 5, missingBlobs: 0 });
    const report = await verifyLedger(to.run, { blobFolder: to.blobFolder });
    expect(report).toEqual(await verifyLedger(from.run, { blobFolder: from.blobFolder }));
    const [one, other] = [from.open("read"), to.open("own")];
    expect([...other.read()]).toEqual([...one.read()]);
    other.append(1500, 1, [made("a")]);
    one.close();
    other.close();
    const again = join(to.folder, "again.jsonl");
    await exportLedger(from.run, again, { blobFolder: from.blobFolder });
    expect(readFileSync(again)).toEqual(readFileSync(file()));
  });

  it("works with an empty ledger, an empty blob, and a large manifest", async () => {
    const ledger = from.open("create");
    const files = Array.from({ length: 800 }, (_, index) => ({
      path: `file-${index}.py`,
      digest: ledger.putBlob(Buffer.from(`${index}`)),
      bytes: `${index}`.length,
      executable: false,
    }));
    const manifest = Buffer.from(JSON.stringify({ files }));
    const empty = { blob: ledger.putBlob(Buffer.alloc(0)), bytes: 0 };
    await exportLedger(from.run, join(from.folder, "empty.jsonl"), { blobFolder: from.blobFolder });
    await importLedger(join(from.folder, "empty.jsonl"), join(to.folder, "empty"), { blobFolder: to.blobFolder });
    ledger.append(0, 1, [made("a", { empty, candidate: { blob: ledger.putBlob(manifest), bytes: manifest.length, manifest: true } })]);
    ledger.close();
    await exported();
    expect(await imported()).toMatchObject({ blobs: 802 });
    expect(await verifyLedger(to.run, { blobFolder: to.blobFolder })).toMatchObject({ ok: true, blobs: { checked: 802 } });
  });

  it("goes without blobs where that is wanted, and says what is missing", async () => {
    from.filled();
    await exported({ blobs: false });
    expect(await imported()).toMatchObject({ events: 20, blobs: 0, missingBlobs: 3 });
  });

  it("leaves out what was pruned", async () => {
    from.filled();
    rmSync(join(from.blobFolder, largeDigest.slice(0, 2), largeDigest.slice(2)));
    await expect(exported()).rejects.toThrow(/no such blob/);
    expect(existsSync(file())).toBe(false);
    const ledger = from.open("own");
    ledger.append(20, 1, [made("run.blobs_pruned", { digests: [largeDigest] })]);
    ledger.close();
    await exported();
    expect(await imported()).toMatchObject({ events: 21, blobs: 4, missingBlobs: 0 });
    expect(await verifyLedger(to.run, { blobFolder: to.blobFolder })).toMatchObject({ ok: true, blobs: { pruned: 1 } });
  });

  it("exports while the owner goes on", async () => {
    const owner = from.open("create");
    owner.append(
      0,
      1,
      Array.from({ length: 3000 }, () => made("a", { text: "x".repeat(300) })),
    );
    const lines: string[] = [];
    const target = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        lines.push(chunk.toString());
        owner.append(owner.head, 1, [made("later")]);
        setImmediate(done);
      },
    });
    expect(await exportLedger(from.run, target, { blobFolder: from.blobFolder })).toMatchObject({ events: 3000 });
    expect(lines.join("")).not.toMatch(/later/);
    owner.close();
  });

  it("refuses to write over a file, and to export what is corrupt", async () => {
    from.filled();
    writeFileSync(file(), "mine");
    await expect(exported()).rejects.toThrow(LedgerUnavailableError);
    expect(readFileSync(file(), "utf8")).toBe("mine");
    rmSync(file());
    from.tamper("UPDATE events SET data = '{}' WHERE sequence = 8");
    await expect(exported()).rejects.toThrow(LedgerCorruptError);
  });
});

describe("a bad import", () => {
  const mangled = async (mangle: (lines: string[]) => string[]): Promise<Readable> => {
    from.filled();
    await exported();
    return Readable.from([`${mangle(readFileSync(file(), "utf8").trimEnd().split("\n")).join("\n")}\n`]);
  };
  const without = (index: number) => (lines: string[]) => lines.filter((_, at) => at !== index);
  const changed = (index: number, change: (line: string) => string) => (lines: string[]) =>
    lines.map((line, at) => (at === index ? change(line) : line));
  const largeLine = (lines: string[]): number => lines.findIndex((line) => line.startsWith(`{"blob":"${largeDigest}"`));

  it.each<[string, (lines: string[]) => string[], RegExp]>([
    ["altered data", changed(8, (line) => line.replace('"head":7', '"head":8')), /line 9: expected event 8 to follow/],
    ["a doubled key", changed(8, (line) => line.replace('"head":7', '"head":9,"head":8')), /line 9/],
    ["a dropped event", without(8), /line 9: expected event 8; found event 9/],
    ["events reordered", (lines) => lines.toSpliced(8, 2, lines[9] ?? "", lines[8] ?? ""), /expected event 8; found event 9/],
    ["a dropped last event", without(20), /expected 20 events that end in/],
    ["a dropped blob", without(21), /blob/],
    ["a dropped part", (lines) => without(largeLine(lines) + 1)(lines), /expected part 1 of blob/],
    ["an altered blob", (lines) => changed(largeLine(lines), (line) => line.replace('"base64":"bGFy', '"base64":"bGFz'))(lines), /SHA-256/],
    ["a cut file", (lines) => lines.slice(0, -1), /it was cut/],
    ["a cut line", (lines) => [...lines.slice(0, 9), (lines[9] ?? "").slice(0, 40)], /line 10: expected a line of JSON/],
    ["more after the end", (lines) => [...lines, lines[1] ?? ""], /nothing after the last line/],
    ["no header", (lines) => lines.slice(1), /line 1: expected an export of a ledger/],
    ["an empty line", (lines) => ["", ...lines], /an empty line/],
    ["a newer format", changed(0, (line) => line.replace('"version":1', '"version":2')), /version 2, of a newer trialist/],
    ["a path in a digest", (lines) => changed(largeLine(lines), (line) => line.replace(largeDigest, "../../../../tmp/x"))(lines), /blob/],
    [
      "a blob that nothing names",
      (lines) => lines.toSpliced(21, 0, JSON.stringify({ blob: digestOf("x"), bytes: 1, part: 0, parts: 1, base64: "eA==" })),
      /which nothing names/,
    ],
    [
      "a blob larger than it says",
      (lines) => changed(largeLine(lines), (line) => line.replace('"bytes":2000001', '"bytes":70000'))(lines),
      /more than the 70000 bytes/,
    ],
    ["an unknown key", changed(1, (line) => line.replace('{"event":', '{"more":1,"event":')), /Unrecognized key/],
  ])("with %s leaves nothing behind", async (_what, mangle, message) => {
    const error = await imported(await mangled(mangle)).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ImportRefusedError);
    expect((error as Error).message).toMatch(message);
    expect(existsSync(to.run)).toBe(false);
    expect(readdirSync(join(to.folder, "runs"))).toEqual([]);
    expect(existsSync(join(to.blobFolder, "tmp")) ? readdirSync(join(to.blobFolder, "tmp")) : []).toEqual([]);
  });

  it("with an endless line is refused before it fills the memory", async () => {
    async function* endless(): AsyncGenerator<string> {
      for (;;) yield "x".repeat(1024 * 1024);
    }
    await expect(imported(Readable.from(endless()))).rejects.toThrow(LineRefusedError);
  });

  it("is refused where a run is, which stays as it is", async () => {
    from.filled();
    await exported();
    const { chain } = to.filled(3);
    await expect(imported()).rejects.toThrow(/Import under another name/);
    const ledger = to.open("read");
    expect(ledger.chain).toBe(chain);
    ledger.close();
  });

  it("of no file says so", async () => {
    await expect(imported(join(from.folder, "nowhere"))).rejects.toThrow(/no such file/);
  });
});
