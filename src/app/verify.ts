import { verifyLedger } from "../adapters/ledger/verify.js";
import { decide } from "../core/harness/decide.js";
import { evolve } from "../core/harness/evolve.js";
import { initialState, type RunState } from "../core/harness/state.js";
import type { Ledger } from "../core/ports/ledger.js";
import { canonicalJson } from "../core/protocol/canonical.js";
import { parseEvent, type StoredRunEvent } from "../core/protocol/events.js";
import { trialRecords } from "../research/engine/trial-records.js";
import { ledgerAt } from "./ledgers.js";
import type { Project } from "./project.js";

export interface VerifiedRun {
  readonly ok: boolean;
  readonly events: number;
  readonly blobs: number;
  readonly chain: string;
  /** The first bad record in words; null when all is well. */
  readonly problem: string | null;
}

/** Recomputes a run: chain, blobs, the shape of every event, the fold, and every verdict from the records that it stands on. */
export async function verifyRun(project: Project, name: string): Promise<VerifiedRun> {
  const folder = project.existingRun(name);
  const report = await verifyLedger(folder, {
    blobFolder: project.blobFolder,
    checkEvent: (event, before) => {
      const parsed = parseEvent(event);
      if (parsed.type !== event.type) return "another type";
      return parsed.type === "run.forked" && parsed.data.from.chain !== before ? "a fork of another record than the one before it" : null;
    },
  });
  const known = { events: report.events, blobs: report.blobs.checked, chain: report.chain };
  if (!report.ok) return { ...known, ok: false, problem: report.firstBad?.message ?? "the ledger does not check out" };
  const ledger = ledgerAt(project, folder, "read");
  try {
    const problem = refold(ledger);
    return { ...known, ok: problem === null, problem };
  } finally {
    ledger.close();
  }
}

/** Folds the whole ledger and decides every adjudication again. */
function refold(ledger: Ledger): string | null {
  const state = initialState();
  const events = [...ledger.read()].map(parseEvent);
  for (const [index, event] of events.entries()) {
    const problem = judged(event) ? checkVerdict(state, events, index, ledger) : null;
    if (problem !== null) return problem;
    evolve(state, event);
  }
  return null;
}

/** Whether an event is the first that an adjudication appended. */
function judged(event: StoredRunEvent): boolean {
  return (
    event.type === "trial.confirmed" ||
    event.type === "trial.provisional" ||
    (event.type === "trial.ended" && event.data.status !== "cancelled" && event.data.status !== "infrastructure_error")
  );
}

function checkVerdict(state: RunState, events: readonly StoredRunEvent[], index: number, ledger: Ledger): string | null {
  const event = events[index];
  if (event === undefined || !("trial" in event.data)) return null;
  const { trial } = event.data;
  // Within one adjudication several events follow each other; only the first is decided from the state before it.
  if (state.trials[trial]?.pending !== 0 || state.trials[trial]?.phase === "ended" || precededByOwn(events, index, trial)) return null;
  const records = trialRecords(state, trial, ledger);
  const again = decide(state, { at: event.at, type: "adjudicate", trial, records }).events;
  const recorded = events.slice(index, index + again.length).map(({ type, data }) => ({ type, data }));
  if (canonicalJson(again) === canonicalJson(recorded)) return null;
  return `event ${event.sequence}: the verdict on ${trial} is not what its records give`;
}

function precededByOwn(events: readonly StoredRunEvent[], index: number, trial: string): boolean {
  const before = events[index - 1];
  return before !== undefined && before.type === "trial.confirmed" && before.data.trial === trial;
}
