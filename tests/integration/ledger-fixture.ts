import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import SqliteDatabase from "better-sqlite3";
import { openSqliteLedger } from "../../src/adapters/ledger/sqlite-ledger.js";
import type { Ledger } from "../../src/core/ports/ledger.js";
import { canonicalJson, digestOf } from "../../src/core/protocol/canonical.js";
import { made } from "./ledger-contract.js";

/** A project's folder with one run in it, under the system's temporary folder. */
export class Project {
  readonly folder = mkdtempSync(join(tmpdir(), "ledger-test-"));
  readonly run = join(this.folder, "runs", "first");
  readonly blobFolder = join(this.folder, "blobs");

  open(mode: "create" | "own" | "read", run = this.run): Ledger {
    return openSqliteLedger(run, { mode, blobFolder: this.blobFolder });
  }

  /** Changes the ledger's file behind its back. */
  tamper(sql: string, ...values: unknown[]): void {
    const db = new SqliteDatabase(join(this.run, "ledger.sqlite"));
    db.exec("PRAGMA ignore_check_constraints = ON");
    for (const statement of sql.split(";").filter((part) => part.trim() !== "")) db.prepare(statement).run(...values);
    db.close();
  }

  /** A closed ledger of `count` events; event 5 names a small blob, event 6 a large one, event 7 a manifest of two files. */
  filled(count = 20): { chain: string } {
    const ledger = this.open("create");
    const special: Record<number, (ledger: Ledger) => unknown> = { 4: this.small, 5: this.large, 6: this.manifest };
    const event = (head: number) => made("trial.ended", special[head]?.(ledger) ?? { head, value: head / 7 });
    for (let head = 0; head < Math.min(count, 10); head++) ledger.append(head, 1000 + head, [event(head)]);
    if (count > 10)
      ledger.append(
        10,
        1010,
        Array.from({ length: count - 10 }, (_, index) => event(10 + index)),
      );
    const { chain } = ledger;
    ledger.close();
    return { chain };
  }

  small(ledger: Ledger): unknown {
    return { output: { blob: ledger.putBlob(Buffer.from("small")), bytes: 5 } };
  }

  large(ledger: Ledger): unknown {
    return { deep: [{ output: { blob: ledger.putBlob(largeBytes), bytes: largeBytes.length } }] };
  }

  manifest(ledger: Ledger): unknown {
    const files = ["a.py", "b.py"].map((path) => ({
      path,
      digest: ledger.putBlob(Buffer.from(`print("${path}")`)),
      bytes: 13,
      executable: false,
    }));
    const bytes = Buffer.from(canonicalJson({ files }));
    return { candidate: { blob: ledger.putBlob(bytes), bytes: bytes.length, manifest: true } };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export const largeBytes = Buffer.alloc(2_000_001, "large");
export const largeDigest = digestOf(largeBytes);
export const smallDigest = digestOf("small");
