import { acquireOwner } from "../../src/adapters/ledger/owner.js";

/** Owns a run until it is killed. */
acquireOwner(process.argv[2] ?? "");
process.stdout.write("held\n");
setInterval(() => undefined, 60_000);
