import { isRunning } from "../core/harness/due.js";
import type { RunState } from "../core/harness/state.js";
import type { StoredRunEvent } from "../core/protocol/events.js";
import { type RunSummary, summarize } from "../research/report/summary.js";
import type { HookEvent } from "./hooks.js";

/** Version of the document that a hook reads on standard input. Members may be added under it; none changes its meaning. */
export const hookSchemaName = "trialist/hook@1";

/** Something that an operator wants to hear of. */
export interface Occurrence {
  readonly event: HookEvent;
  /** Of the ledger's event; for `stalled` the last one there was. */
  readonly sequence: number;
  readonly at: number;
  /** In one word: finished, cancelled, suspended, promotion, retraction, stalled. */
  readonly happened: string;
  readonly reason: string;
  readonly todo: string;
}

/** What a stored event means to an operator; null for nearly all of them. */
export function occurrenceOf(event: StoredRunEvent): Occurrence | null {
  const { sequence, at } = event;
  switch (event.type) {
    case "run.finished":
      return { event: "finished", sequence, at, happened: "finished", reason: event.data.reason, todo: "" };
    case "run.cancelled":
      return { event: "finished", sequence, at, happened: "cancelled", reason: event.data.reason, todo: "" };
    case "run.suspended":
      return { event: "suspended", sequence, at, happened: "suspended", reason: event.data.reason, todo: event.data.todo };
    case "leader.changed": {
      const { trial, previous, cause } = event.data;
      if (cause === "calibration") return null;
      const reason = cause === "promotion" ? `${trial} is better than ${previous}` : `${previous} was retracted; ${trial} leads again`;
      return { event: "best", sequence, at, happened: cause, reason, todo: "" };
    }
    default:
      return null;
  }
}

/** That nothing has ended for too long; null for a run that waits for a person anyway. */
export function stallOf(state: RunState, afterMs: number, now: number): Occurrence | null {
  if (!isRunning(state)) return null;
  return {
    event: "stalled",
    sequence: state.version,
    at: now,
    happened: "stalled",
    reason: `no trial has ended for ${Math.round(afterMs / 1000)} s`,
    todo: `Look with \`trialist status\`: a slow stage, a researcher that does not answer, or a machine that is busy.`,
  };
}

/** Where the run lies, for the person who reads. */
interface Place {
  readonly run: string;
  readonly folder: string;
}

/** The document of an occurrence. All text in it is data: hypotheses are a researcher's words. */
export function hookDocument(
  { event, sequence, at, happened, reason, todo }: Occurrence,
  { run, folder }: Place,
  state: RunState,
  blob: (digest: string) => Uint8Array,
): Record<string, unknown> {
  const summary = summarize(state, at, { blob });
  const { environment, metric, best, progress, spend, time } = summary;
  return {
    schema: hookSchemaName,
    event,
    sequence,
    at,
    run,
    folder,
    happened,
    reason,
    todo,
    state: summary.state,
    environment,
    metric,
    baseline: summary.baseline,
    best: best === null ? null : bestMember(best),
    progress: { done: progress.done, cap: progress.cap, open: progress.open },
    spend: { costUsd: spend.costUsd, tokens: spend.tokens, computeMs: spend.computeMs, activeMs: time.activeMs, caps: spend.caps },
    report: `trialist report ${run} -C ${shellWord(folder)}`,
  };
}

function bestMember(best: NonNullable<RunSummary["best"]>): Record<string, unknown> {
  const { trial, value, interval, confirmed, selfReported, hypothesis, overBaseline, gain, restsOnRetracted } = best;
  return { trial, value, interval, confirmed, selfReported, hypothesis, overBaseline, verdict: gain, restsOnRetracted };
}

/** For a person to copy into a shell. */
function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
