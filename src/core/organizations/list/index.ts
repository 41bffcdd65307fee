import { z } from "zod";
import { activeTrials } from "../../harness/steering.js";
import type { Organization } from "../organization.js";

const configuration = z.strictObject({});

/**
 * Measures what is in the queue and wants nothing of its own: for candidates that are known beforehand, such as copies
 * of the baseline or the parts of a winner. Ends when the list is worked off.
 */
export const list: Organization<Record<string, never>, z.infer<typeof configuration>> = {
  name: "list",
  roles: [],
  asks: "nothing",
  isServed: () => false,
  hasOwnBaseline: true,
  duplicates: "measure",
  configure: (given) => configuration.parse(given),
  initial: () => ({}),
  evolve: () => undefined,
  next: (_fold, state) => (activeTrials(state).length > 0 ? { kind: "wait" } : { kind: "finish", reason: "the list is worked off" }),
};
