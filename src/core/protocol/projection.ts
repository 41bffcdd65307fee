import type { EventData, EventType, StoredRunEvent } from "./events.js";

/** What is left of an event when everything is gone that may differ between two runs of the same story. */
export interface ProjectedEvent {
  readonly type: EventType;
  readonly data: unknown;
}

/** What an event's data become; null: an event of this type says nothing about what was found, only how it went. */
type Rule<T extends EventType> = ((data: EventData<T>) => unknown) | null;

/**
 * A run's ledger as its science: two runs are the same when their projections are equal. Left out is what no decision
 * hangs on and what a crash, another machine or another name changes: times, handles, usage, the host, owners and their
 * epochs, spans, pauses, attempts that taught nothing about the candidate, attempt and round numbers, what was printed.
 * Order is kept: parallel runs are the same only where their completions came in one order.
 */
export function project(events: Iterable<StoredRunEvent>): ProjectedEvent[] {
  const all = [...events];
  const fruitless = fruitlessAttempts(all);
  const projected: ProjectedEvent[] = [];
  for (const event of all) {
    if ((event.type === "stage.ended" || event.type === "attempt.ended") && fruitless.has(attemptOf(event.data))) continue;
    const rule = rules[event.type] as Rule<EventType>;
    const data = rule === null ? undefined : rule(event.data);
    if (data !== undefined) projected.push({ type: event.type, data });
  }
  return projected;
}

/** Attempts whose end is the machine's or the evaluator's fault: they are made again as if they had never been. */
function fruitlessAttempts(events: readonly StoredRunEvent[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const event of events) {
    if (event.type !== "attempt.ended") continue;
    const { kind } = event.data.result;
    if (kind === "interrupted" || kind === "evaluator_failure") found.add(attemptOf(event.data));
  }
  return found;
}

function attemptOf(data: { readonly measurement: string; readonly attempt: number }): string {
  return `${data.measurement}.${data.attempt}`;
}

function whole<D>(data: D): D {
  return data;
}

/** One rule per event type; a new type does not compile before somebody has decided what it means here. */
const rules: { readonly [T in EventType]: Rule<T> } = {
  "run.started": ({ configuration: { run: _name, host: _host, gate: _gate, ...configuration } }) => ({ configuration }),
  "run.span_opened": null,
  // From where and when is told of no science; what was taken over is.
  "calibration.reused": ({ results }) => ({
    results: results.map(({ wallMs: _wall, cpuMs: _cpu, ...result }) => result),
  }),
  "run.calibrated": ({ noise }) => ({ noise }),
  "run.paused": null,
  "run.resumed": null,
  "run.suspended": null,
  "run.finishing": whole,
  "run.finished": whole,
  "run.cancelled": whole,
  "run.extended": whole,
  "run.forked": ({ configuration: { run: _name, host: _host, ...configuration } }) => ({ configuration }),
  "run.blobs_pruned": null,

  // A view holds the time that is left, and output that was printed.
  "call.requested": ({ view: _view, viewVersion: _version, reservation: _reservation, ...data }) => data,
  "call.answered": ({ call, output }) => ({ call, output }),
  "call.refused": ({ call, output, violations, final }) => ({ call, output, violations, final }),
  "call.failed": ({ call, kind, message, final }) => (kind === "infrastructure" && !final ? undefined : { call, kind, message, final }),

  "session.opened": ({ session, role, researcher, base }) => ({ session, role, researcher, base }),
  "session.turn_reserved": null,
  "session.turn_ended": null,
  "session.tool_called": null,
  "session.submitted": whole,
  "session.closed": ({ session, reason }) => ({ session, reason }),
  "session.interrupted": null,

  "plan.proposed": whole,
  "plan.admitted": whole,
  "plan.refused": whole,
  "plan.closed": whole,

  "queue.added": whole,
  "queue.removed": whole,
  "queue.moved": whole,

  "trial.admitted": whole,
  "measurement.requested": whole,
  "attempt.started": null,
  "stage.started": null,
  "stage.ended": ({ measurement, stage, repeat, outcome: { exitCode, signal, limit, outputs } }) => ({
    measurement,
    stage,
    repeat,
    exitCode,
    signal,
    limit,
    outputs,
  }),
  "attempt.ended": ({ measurement, result }) => ({ measurement, result: projectedResult(result) }),
  "trial.provisional": whole,
  "trial.confirmed": whole,
  "trial.ended": whole,
  "trial.retracted": whole,
  "trial.steered": whole,
  "leader.changed": whole,

  "knowledge.committed": whole,
  "wake_up.scheduled": null,
  "wake_up.fired": ({ wakeUp }) => ({ wakeUp }),
  "drift.noticed": whole,
  // A person who pauses and resumes changes when things happen, not what.
  "operator.acted": ({ action, ...data }) => (action === "pause" || action === "resume" ? undefined : { action, ...data }),
};

function projectedResult(result: EventData<"attempt.ended">["result"]): unknown {
  if (result.kind !== "measured") return result;
  const { values, selfReported } = result.measured;
  return { kind: result.kind, values, selfReported, records: result.records, outputs: result.outputs };
}
