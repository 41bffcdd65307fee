import { describe, expect, it } from "vitest";
import { MemoryStore, openMemoryLedger } from "../../src/adapters/ledger/memory-ledger.js";
import { LedgerCorruptError } from "../../src/core/ports/ledger-errors.js";
import { ledgerContract, made } from "./ledger-contract.js";

ledgerContract("ledger in memory", () => {
  const store = new MemoryStore();
  const open = () => openMemoryLedger(store);
  return { open, takeOver: open, dispose: () => undefined };
});

describe("an altered ledger in memory", () => {
  it("is noticed by its reader", () => {
    const store = new MemoryStore();
    const ledger = openMemoryLedger(store);
    ledger.append(0, 1, [made("a"), made("b"), made("c")]);
    const [, second] = store.records;
    store.records[1] = { ...(second as NonNullable<typeof second>), data: "[]" };
    expect(() => [...ledger.read()]).toThrow(LedgerCorruptError);
    expect(() => [...ledger.read()]).toThrow(/event 2/);
  });
});
