import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import SqliteDatabase from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Look, openSealed, readSealed } from "../../src/adapters/ledger/sealed.js";
import { LedgerSchemaError } from "../../src/core/ports/ledger-errors.js";
import { Project } from "./ledger-fixture.js";

let project: Project;
beforeEach(() => {
  project = new Project();
});
afterEach(() => project.remove());

const digest = "a".repeat(64);
const looked = (values: Record<string, number> | null, at = 5): Look => ({
  at,
  subject: digest,
  trial: "t3",
  reason: "the run has ended",
  operator: "someone",
  environment: digest,
  ledger: { head: 9, chain: digest },
  values,
  failure: values === null ? "the evaluator crashed" : null,
  attempts: [{ attempt: 1, seed: null, ended: "keep", values, wallMs: 12.5, guarantees: null }],
  host: { name: "box", platform: "linux", cpu: "some", cpus: 2, memoryBytes: 1e9 },
});

it("records looks in order, failed ones too, in one private file", () => {
  expect(readSealed(project.run)).toBeNull();
  const sealed = openSealed(project.run);
  const first = sealed.append(looked({ loss: 0.4 }));
  const second = sealed.append(looked(null, 1));
  expect([sealed.count, sealed.looks(), sealed.verify()]).toEqual([2, [first, second], { looks: 2, firstBad: null }]);
  sealed.close();
  expect(readdirSync(project.run)).toEqual(["sealed.sqlite"]);
  expect(statSync(join(project.run, "sealed.sqlite")).mode & 0o777).toBe(0o600);
  const again = readSealed(project.run);
  expect(again?.looks()).toEqual([first, second]);
  expect(() => again?.append(looked({ loss: 1 }))).toThrow(/reading/);
  again?.close();
  expect(existsSync(join(project.run, "ledger.sqlite"))).toBe(false);
});

it("takes looks of two commands at once, in one chain", () => {
  const [one, other] = [openSealed(project.run), openSealed(project.run)];
  for (let index = 0; index < 10; index++) (index % 2 === 0 ? one : other).append(looked({ loss: index }));
  expect(other.verify()).toEqual({ looks: 10, firstBad: null });
  one.close();
  other.close();
});

it.each<[string, Look]>([
  ["neither values nor a failure", { ...looked(null), failure: null }],
  ["both", { ...looked({ loss: 1 }), failure: "and failed" }],
  ["no reason", { ...looked({ loss: 1 }), reason: " " }],
  ["a value that is no number", looked({ loss: Number.NaN })],
  ["a subject that is no digest", { ...looked({ loss: 1 }), subject: "t3" }],
])("refuses a look with %s", (_what, one) => {
  const sealed = openSealed(project.run);
  expect(() => sealed.append(one)).toThrow();
  expect(sealed.count).toBe(0);
  sealed.close();
});

it.each<[string, string, number, string]>([
  ["altered", "UPDATE events SET data = replace(data, '0.4', '0.3') WHERE sequence = 2", 2, "altered"],
  ["dropped", "DELETE FROM events WHERE sequence = 1", 1, "dropped"],
  ["dropped at the end", "DELETE FROM events WHERE sequence = 3", 3, "truncated"],
])("names the first look that was %s", (_what, sql, sequence, difference) => {
  const sealed = openSealed(project.run);
  for (let index = 0; index < 3; index++) sealed.append(looked({ loss: 0.4 }));
  const db = new SqliteDatabase(join(project.run, "sealed.sqlite"));
  db.exec(sql);
  db.close();
  const { firstBad } = sealed.verify();
  expect([firstBad?.sequence, firstBad?.difference]).toEqual([sequence, difference]);
  expect(() => sealed.looks()).toThrow(/sealed\.sqlite/);
  sealed.close();
});

it("is refused in a newer schema", () => {
  openSealed(project.run).close();
  const db = new SqliteDatabase(join(project.run, "sealed.sqlite"));
  db.exec("INSERT INTO migrations VALUES (7, 'later', 0)");
  db.close();
  expect(() => openSealed(project.run)).toThrow(LedgerSchemaError);
});
