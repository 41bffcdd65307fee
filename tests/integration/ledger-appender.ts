import { existsSync } from "node:fs";
import { join } from "node:path";
import { openSqliteLedger } from "../../src/adapters/ledger/sqlite-ledger.js";

/** Appends until it is killed; prints the head after each append. */
const [runFolder = "", blobFolder = ""] = process.argv.slice(2);
const ledger = openSqliteLedger(runFolder, { mode: existsSync(join(runFolder, "ledger.sqlite")) ? "own" : "create", blobFolder });
for (;;) {
  const n = ledger.head + 1;
  const bytes = Buffer.from(n % 10 === 0 ? `large ${n}`.padEnd(70_000, "x") : `small ${n}`);
  const blob = ledger.putBlob(bytes);
  ledger.append(ledger.head, n, [{ type: "test.appended", version: 1, data: { n, output: { blob, bytes: bytes.length } } }]);
  process.stdout.write(`${ledger.head}\n`);
}
