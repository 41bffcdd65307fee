import { readSealed } from "../adapters/ledger/sealed.js";

/** How often anybody looked at a run's held-out data: the number alone, and nothing of what they saw. */
export function countLooks(runFolder: string): number {
  const sealed = readSealed(runFolder);
  if (sealed === null) return 0;
  try {
    return sealed.count;
  } finally {
    sealed.close();
  }
}
