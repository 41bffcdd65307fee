import { evolve } from "../../core/harness/evolve.js";
import { initialState, type OpenCall, type OpenMeasurement, type RunState, trialOf } from "../../core/harness/state.js";
import { canonicalJson } from "../../core/protocol/canonical.js";
import type { EventData, StoredRunEvent } from "../../core/protocol/events.js";

/** Where views lie. */
interface Source {
  readonly blob: (digest: string) => Uint8Array;
}

const decoder = new TextDecoder();

type CallEnd =
  | { readonly type: "call.answered" | "call.refused"; readonly data: EventData<"call.answered" | "call.refused"> }
  | { readonly type: "call.failed"; readonly data: EventData<"call.failed"> };
/** What one attempt told, from its start to its end. */
export type RecordedAttempt = readonly Extract<
  StoredRunEvent,
  { type: "attempt.started" | "stage.started" | "stage.ended" | "attempt.ended" }
>[];

/**
 * What a run learnt from outside, found by the question: an answer by who was asked, for which role and with which view,
 * a measurement by the candidate that ran, why, and on which seed. Each is given out once, in the order of the record.
 */
export class Recording {
  private readonly calls = new Map<string, CallEnd[][]>();
  private readonly attempts = new Map<string, RecordedAttempt[]>();

  constructor(
    events: readonly StoredRunEvent[],
    private readonly source: Source,
  ) {
    const state = initialState();
    const openCalls = new Map<string, CallEnd[]>();
    const openAttempts = new Map<string, Extract<StoredRunEvent, { type: "attempt.started" }>[]>();
    for (const event of events) {
      evolve(state, event);
      this.takeCall(state, event, openCalls);
      this.takeAttempt(state, event, openAttempts as Map<string, RecordedAttempt[number][]>);
    }
  }

  /** The rounds of the call that asked the same; undefined when none is left. */
  roundsOf(call: OpenCall, blobs: Source): readonly CallEnd[] | undefined {
    return this.calls.get(callKey(call, blobs))?.shift();
  }

  /** The next attempt of the same measurement; undefined when none is left. */
  attemptOf(state: RunState, measurement: OpenMeasurement): RecordedAttempt | undefined {
    return this.attempts.get(measurementKey(state, measurement))?.shift();
  }

  private takeCall(state: RunState, event: StoredRunEvent, open: Map<string, CallEnd[]>): void {
    if (event.type === "call.requested") {
      const rounds: CallEnd[] = [];
      const call = state.calls[event.data.call];
      open.set(event.data.call, rounds);
      if (call !== undefined) put(this.calls, callKey(call, this.source), rounds);
    } else if (event.type === "call.answered" || event.type === "call.refused") open.get(event.data.call)?.push(event as CallEnd);
    else if (event.type === "call.failed" && event.data.kind !== "cancelled") open.get(event.data.call)?.push(event);
  }

  private takeAttempt(state: RunState, event: StoredRunEvent, open: Map<string, RecordedAttempt[number][]>): void {
    if (event.type === "attempt.started") {
      const attempt: RecordedAttempt[number][] = [event];
      const measurement = state.measurements[event.data.measurement];
      open.set(event.data.measurement, attempt);
      if (measurement !== undefined) put(this.attempts, measurementKey(state, measurement), attempt);
    } else if (event.type === "stage.started" || event.type === "stage.ended" || event.type === "attempt.ended")
      open.get(event.data.measurement)?.push(event);
  }
}

function put<V>(map: Map<string, V[]>, key: string, value: V): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [value]);
  else known.push(value);
}

/** A command researcher draws from the seed, so that another seed is another question. The time that is left is not one. */
function callKey({ researcher, role, view, seed }: OpenCall, blobs: Source): string {
  const shown = JSON.parse(decoder.decode(blobs.blob(view.blob))) as Record<string, unknown>;
  return [researcher, role, canonicalJson({ ...shown, activeMsLeft: null }), seed].join("\n");
}

function measurementKey(state: RunState, { subject, reason, purpose, seed }: OpenMeasurement): string {
  return [trialOf(state, subject).candidate.blob, reason, purpose, seed].join("\n");
}
