import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Ledger, NewEvent, StoredEvent } from "../../src/core/ports/ledger.js";
import {
  BlobCorruptError,
  BlobMissingError,
  EventRefusedError,
  LedgerNotWritableError,
  StaleOwnerError,
  VersionConflictError,
} from "../../src/core/ports/ledger-errors.js";
import { canonicalJson, digestOf } from "../../src/core/protocol/canonical.js";

/** One run's storage under test. `open` gives a handle; what is stored outlives it. */
export interface LedgerUnderTest {
  /** Opens as the owner, creating at the first time. */
  open(): Ledger;
  /** A later owner takes the run while earlier handles still exist. */
  takeOver(): Ledger;
  dispose(): void;
}

export const made = (type: string, data: unknown = {}): NewEvent => ({ type, version: 1, data });
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What every ledger promises. Run against each implementation. */
export function ledgerContract(name: string, factory: () => LedgerUnderTest): void {
  describe(name, () => {
    let under: LedgerUnderTest;
    let ledger: Ledger;
    beforeEach(() => {
      under = factory();
      ledger = under.open();
    });
    afterEach(() => {
      ledger.close();
      under.dispose();
    });

    describe("events", () => {
      it("starts empty", () => {
        expect([ledger.head, ledger.chain, [...ledger.read()]]).toEqual([0, "0".repeat(64), []]);
      });

      it("gives events their places and reads them back", () => {
        const first = ledger.append(0, 1000, [made("run.started", { b: 1, a: [null, "ü\u2028\0"] }), made("trial.admitted")]);
        const second = ledger.append(2, 900, [made("trial.ended", { value: -0.1 })]);
        expect([...first, ...second].map((event) => event.sequence)).toEqual([1, 2, 3]);
        expect([...ledger.read()]).toEqual([...first, ...second]);
        expect([...ledger.read(2)]).toEqual([...second]);
        expect([...ledger.read(3)]).toEqual([]);
      });

      it("chains by the documented rule", () => {
        const [event] = ledger.append(0, 7, [made("a.b", { z: 1, y: undefined, x: "1" })]);
        expect(ledger.chain).toBe(digestOf(`${"0".repeat(64)}\n${canonicalJson(event)}`));
      });

      it("refuses another head and records nothing", () => {
        ledger.append(0, 1, [made("a")]);
        const chain = ledger.chain;
        expect(() => ledger.append(0, 1, [made("b")])).toThrow(VersionConflictError);
        expect(() => ledger.append(2, 1, [made("b")])).toThrow(/event 2; found event 1/);
        expect([ledger.head, ledger.chain]).toEqual([1, chain]);
      });

      it.each<[string, NewEvent, number]>([
        ["a type that is no word", made("a b"), 1],
        ["an empty type", made(""), 1],
        ["a version of 0", { ...made("a"), version: 0 }, 1],
        ["a fractional time", made("a"), 1.5],
        ["too much data", made("a", { text: "x".repeat(8 * 1024 * 1024) }), 1],
      ])("refuses %s, all or nothing", (_what, event, at) => {
        expect(() => ledger.append(0, at, [made("good"), event])).toThrow(EventRefusedError);
        expect(ledger.head).toBe(0);
      });

      it("refuses what JSON would change in silence", () => {
        expect(() => ledger.append(0, 1, [made("good"), made("a", { value: Number.NaN })])).toThrow(/finite/);
        expect([...ledger.read()]).toEqual([]);
      });

      it("lets its reader append in the middle", () => {
        ledger.append(
          0,
          1,
          Array.from({ length: 200 }, (_, index) => made("a", { index })),
        );
        let seen = 0;
        for (const event of ledger.read()) {
          seen++;
          if (event.sequence === 100) ledger.append(200, 2, [made("b")]);
        }
        expect([seen, ledger.head]).toEqual([200, 201]);
      });

      it("goes on where it was closed", () => {
        const stored = ledger.append(0, 1, [made("a"), made("b", [1, 2])]);
        const { chain } = ledger;
        ledger.close();
        ledger = under.open();
        expect([ledger.head, ledger.chain, [...ledger.read()]]).toEqual([2, chain, stored]);
      });

      it("reads back any JSON, in any batches", () => {
        const json = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown);
        const batch = fc.array(
          fc.record({ type: fc.constantFrom("a", "b.c", "d-e/f"), version: fc.integer({ min: 1, max: 9 }), data: json }),
          { maxLength: 5 },
        );
        fc.assert(
          fc.property(fc.array(batch, { maxLength: 5 }), fc.integer({ min: -1e12, max: 1e13 }), (appends, at) => {
            const start = ledger.head;
            const stored: StoredEvent[] = [];
            for (const events of appends) stored.push(...ledger.append(ledger.head, at, events));
            expect([...ledger.read(start)]).toEqual(stored);
          }),
          { numRuns: 60 },
        );
        expect([...ledger.read()]).toHaveLength(ledger.head);
      });
    });

    describe("blobs", () => {
      const large = new Uint8Array(200_000).map((_, index) => index % 251);

      it("keeps what an append brings, small and large", () => {
        const small = bytesOf("small");
        const blobs = [small, large, new Uint8Array(0)].map((bytes) => ({ digest: digestOf(bytes), bytes }));
        ledger.append(
          0,
          1,
          [
            made(
              "a",
              blobs.map(({ digest, bytes }) => ({ blob: digest, bytes: bytes.length })),
            ),
          ],
          blobs,
        );
        ledger.close();
        ledger = under.open();
        for (const { digest, bytes } of blobs) {
          expect(ledger.hasBlob(digest)).toBe(true);
          expect(Buffer.compare(ledger.blob(digest), bytes)).toBe(0);
        }
      });

      it("keeps what was put before the event that names it", () => {
        const digests = [ledger.putBlob(bytesOf("early")), ledger.putBlob(large), ledger.putBlob(bytesOf("early"))];
        expect(digests.map((digest) => ledger.hasBlob(digest))).toEqual([true, true, true]);
        ledger.append(0, 1, [made("a")]);
        ledger.close();
        ledger = under.open();
        expect(Buffer.from(ledger.blob(digests[0] ?? "")).toString()).toBe("early");
        expect(ledger.blob(digests[1] ?? "").length).toBe(large.length);
      });

      it("keeps waiting blobs over a refused append", () => {
        const digest = ledger.putBlob(bytesOf("waits"));
        expect(() => ledger.append(5, 1, [made("a")])).toThrow(VersionConflictError);
        ledger.append(0, 1, [made("a")]);
        ledger.close();
        ledger = under.open();
        expect(ledger.hasBlob(digest)).toBe(true);
      });

      it("does not follow a caller that changes the bytes later", () => {
        const bytes = bytesOf("before");
        const digest = ledger.putBlob(bytes);
        bytes.fill(0);
        ledger.append(0, 1, [made("a")]);
        expect(Buffer.from(ledger.blob(digest)).toString()).toBe("before");
      });

      it("refuses bytes under a false name, and records nothing", () => {
        const blob = { digest: digestOf("other"), bytes: bytesOf("these") };
        expect(() => ledger.append(0, 1, [made("a")], [blob])).toThrow(BlobCorruptError);
        expect([ledger.head, ledger.hasBlob(blob.digest)]).toEqual([0, false]);
      });

      it.each(["f".repeat(64), "../../etc/passwd", ""])("has no blob %j", (digest) => {
        expect(ledger.hasBlob(digest)).toBe(false);
        expect(() => ledger.blob(digest)).toThrow(BlobMissingError);
      });
    });

    describe("checkpoints", () => {
      const save = (sequence: number, chain: string, foldVersion = "1", state = "state") =>
        ledger.saveCheckpoint({ sequence, chain, foldVersion, state });

      it("gives back the latest of the same fold", () => {
        ledger.append(0, 1, [made("a")]);
        save(1, ledger.chain, "1", "one");
        ledger.append(1, 1, [made("b")]);
        save(2, ledger.chain, "1", "two");
        expect(ledger.loadCheckpoint("1")).toEqual({ sequence: 2, chain: ledger.chain, foldVersion: "1", state: "two" });
        expect(ledger.loadCheckpoint("2")).toBeNull();
      });

      it("ignores one that is not on the chain and falls back", () => {
        ledger.append(0, 1, [made("a"), made("b")]);
        const first = ledger.chain;
        save(2, first);
        save(2, "f".repeat(64));
        expect(ledger.loadCheckpoint("1")?.chain).toBe(first);
        save(9, first);
        save(1, first);
        expect(ledger.loadCheckpoint("1")).toBeNull();
      });

      it("keeps the latest two", () => {
        ledger.append(0, 1, [made("a")]);
        for (const fold of ["1", "2", "3"]) save(1, ledger.chain, fold);
        expect(["1", "2", "3"].map((fold) => ledger.loadCheckpoint(fold) !== null)).toEqual([false, true, true]);
      });
    });

    describe("owner", () => {
      it("remembers the last heartbeat", () => {
        expect(ledger.lastHeartbeat()).toBeNull();
        ledger.heartbeat(10);
        ledger.heartbeat(30);
        ledger.close();
        ledger = under.open();
        expect(ledger.lastHeartbeat()).toEqual({ at: 30 });
      });

      it("refuses every write of an owner that was replaced", () => {
        ledger.append(0, 1, [made("a")]);
        const later = under.takeOver();
        for (const write of [() => ledger.append(1, 1, [made("b")]), () => ledger.heartbeat(1), () => save(ledger)])
          expect(write).toThrow(StaleOwnerError);
        later.append(1, 1, [made("c")]);
        expect([...later.read()].map((event) => event.type)).toEqual(["a", "c"]);
        later.close();
      });
      const save = (one: Ledger): void => one.saveCheckpoint({ sequence: 1, chain: one.chain, foldVersion: "1", state: "" });

      it("says so when it is closed", () => {
        ledger.close();
        ledger.close();
        expect(() => ledger.append(0, 1, [made("a")])).toThrow(LedgerNotWritableError);
        expect(() => [...ledger.read()]).toThrow(LedgerNotWritableError);
      });
    });

    describe("subscribers", () => {
      it("hear every append until they stop", () => {
        const heard: number[] = [];
        const stop = ledger.subscribe((events) => heard.push(...events.map((event) => event.sequence)));
        ledger.append(0, 1, [made("a"), made("b")]);
        ledger.append(2, 1, [made("c")]);
        stop();
        ledger.append(3, 1, [made("d")]);
        expect(heard).toEqual([1, 2, 3]);
      });

      it("hear appends in order when one of them appends", () => {
        const heard: number[] = [];
        ledger.subscribe((events) => {
          if (events[0]?.sequence === 1) ledger.append(1, 1, [made("b")]);
        });
        ledger.subscribe((events) => heard.push(...events.map((event) => event.sequence)));
        ledger.append(0, 1, [made("a")]);
        expect(heard).toEqual([1, 2]);
      });
    });
  });
}
