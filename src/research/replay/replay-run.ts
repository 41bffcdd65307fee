import { decide } from "../../core/harness/decide.js";
import { evolve } from "../../core/harness/evolve.js";
import { configurationOf, initialState, type RunState } from "../../core/harness/state.js";
import type { Ledger } from "../../core/ports/ledger.js";
import type { RoleRequest } from "../../core/ports/researcher.js";
import { canonicalJson } from "../../core/protocol/canonical.js";
import type { Command, Decision, TimelessCommand } from "../../core/protocol/commands.js";
import { RefusedError } from "../../core/protocol/errors.js";
import { currentVersion, parseEvent, type RunEvent, type StoredRunEvent } from "../../core/protocol/events.js";
import type { RunConfiguration } from "../../core/protocol/run.js";
import { type Blobs, manifestAt } from "../roles/role.js";
import { roleRequest } from "../runner/role-call.js";
import { causesOf } from "./causes.js";

/** What a replay found. */
export interface Replayed {
  readonly events: number;
  /** Commands that were decided again, and gave what is on record. */
  readonly decided: number;
  readonly calls: number;
  /** Answers of language models that came out of the recorded traffic again, byte for byte, from the prompt built anew. */
  readonly reanswered: number;
  /** Tool calls of long sessions: what they gave is on record, and not called again. */
  readonly toolCalls: number;
  /** Events that are taken from the record as they are: nothing on record says what caused them. */
  readonly taken: number;
  /** Calls whose view this build makes otherwise than the build that recorded them; the recorded view is gone on with. */
  readonly otherViews: number;
  /** The first place where the replay gave something else; null when it gave the same. */
  readonly difference: { readonly sequence: number; readonly message: string } | null;
}

export interface ReplayHost {
  readonly source: Ledger;
  /** Where the replayed run is written; empty at the start. */
  readonly target: Ledger;
  /** Takes secrets out of what a researcher was shown, as it did in the run. */
  readonly redact: (text: string) => string;
  /** Puts a request to the model that answered then, over the recorded traffic. Both null: it is none that this can be done with. */
  readonly reanswer: (
    researcher: string,
    settings: RunConfiguration["researcherSettings"],
    request: RoleRequest,
    traffic: Uint8Array,
  ) => Promise<{ readonly raw: Uint8Array | null; readonly difference: string | null }>;
}

/**
 * Decides a recorded run again: its recorded answers, outcomes and words of people go in, and every event that the core
 * makes of them must be the one on record, in the same order, at the same time. Answers are read anew from what came
 * back, and a model's answer is got anew from the recorded traffic with a prompt built anew.
 */
export async function replayRun(host: ReplayHost): Promise<Replayed> {
  return await new Replay(host).work();
}

class Replay {
  private readonly state: RunState = initialState();
  private readonly blobs: Blobs;
  private counts = { decided: 0, calls: 0, reanswered: 0, toolCalls: 0, taken: 0, otherViews: 0 };

  constructor(private readonly host: ReplayHost) {
    this.blobs = {
      blob: (digest) => this.host.source.blob(digest),
      putBlob: (bytes) => ({ blob: this.host.target.putBlob(bytes), bytes: bytes.byteLength }),
    };
  }

  async work(): Promise<Replayed> {
    // A run's events fit into memory, its blobs need not: those are read one by one.
    const events = [...this.host.source.read()].map(parseEvent);
    for (let place = 0; place < events.length; ) {
      const ahead = events.slice(place, place + longestDecision);
      const answer = await this.reanswered(ahead[0]);
      if (answer !== null) return this.found(place, ahead[0], answer);
      const decision = this.decided(ahead);
      if (typeof decision === "string") return this.found(place, ahead[0], decision);
      this.append(ahead.slice(0, decision), ahead[0]?.at ?? 0);
      place += decision;
    }
    return { events: events.length, ...this.counts, difference: null };
  }

  private found(place: number, event: StoredRunEvent | undefined, message: string): Replayed {
    return { events: place, ...this.counts, difference: { sequence: event?.sequence ?? place, message } };
  }

  /** How many of the events ahead one command gives again; or what it gives instead. */
  private decided(ahead: readonly StoredRunEvent[]): number | string {
    const [event] = ahead;
    if (event === undefined) return "nothing is left";
    const candidates = causesOf({ state: this.state, ahead, blobs: this.blobs });
    if (candidates.length === 0) return this.takenAsIs(event, ahead);
    let difference = "";
    for (const candidate of candidates) {
      const decision = this.decision({ ...candidate, at: event.at } as Command);
      const problem = typeof decision === "string" ? decision : differenceOf(decision, ahead);
      if (problem !== null) {
        difference ||= `${candidate.type}: ${problem}`;
        continue;
      }
      const { events, blobs } = decision as Decision;
      for (const { bytes } of blobs) this.host.target.putBlob(bytes);
      this.counts.decided += 1;
      if (isAnswer(candidate)) this.counts.calls += 1;
      if (candidate.type === "record_tool") this.counts.toolCalls += 1;
      if (viewOf(events[0]) !== viewOf(event)) this.counts.otherViews += 1;
      return events.length;
    }
    return difference;
  }

  private decision(command: Command): Decision | string {
    try {
      return decide(this.state, command);
    } catch (error) {
      if (error instanceof RefusedError) return `refused: ${error.message}`;
      throw error;
    }
  }

  /** A submission that was refused left no candidate; what an older build recorded of an operator may be unknown here. */
  private takenAsIs(event: StoredRunEvent, ahead: readonly StoredRunEvent[]): number | string {
    const isRefusal = event.type === "plan.proposed" && ahead[1]?.type === "plan.refused";
    const isKnown = isRefusal || event.type === "run.blobs_pruned" || event.type === "operator.acted";
    if (!isKnown) return `${event.type} is on record, and nothing that is on record causes it`;
    const length = isRefusal ? 2 : 1;
    this.counts.taken += length;
    return length;
  }

  /** Null when the recorded answer came again, or when there is nothing to get it from. */
  private async reanswered(event: StoredRunEvent | undefined): Promise<string | null> {
    if (event?.type !== "call.answered" && event?.type !== "call.refused") return null;
    const { traffic, output, round } = event.data;
    const call = this.state.calls[event.data.call];
    if (traffic === null || output === null || call === undefined) return null;
    const request = roleRequest({ state: this.state }, call, round, this.blobs, this.host.redact);
    const settings = configurationOf(this.state).researcherSettings;
    const { raw, difference } = await this.host.reanswer(call.researcher, settings, request, this.host.source.blob(traffic.blob));
    if (raw === null) return difference;
    if (Buffer.compare(raw, this.host.source.blob(output.blob)) !== 0) return `the recorded traffic of ${call.id} gives another answer`;
    this.counts.reanswered += 1;
    return null;
  }

  private append(events: readonly StoredRunEvent[], at: number): void {
    const { source, target } = this.host;
    for (const { blob, manifest } of events.flatMap((event) => referencesIn(event.data))) {
      target.putBlob(source.blob(blob));
      if (manifest) for (const file of manifestAt(blob, source).files) target.putBlob(source.blob(file.digest));
    }
    target.append(
      this.state.version,
      at,
      events.map(({ type, data }) => ({ type, version: currentVersion(type), data })),
    );
    for (const event of events) evolve(this.state, event);
  }
}

/** More events than any one command gives, a cancelled run of 256 trials included. */
const longestDecision = 2000;

function isAnswer({ type }: TimelessCommand): boolean {
  return type === "answer_call" || type === "fail_call";
}

function differenceOf({ events }: Decision, ahead: readonly StoredRunEvent[]): string | null {
  if (events.length === 0) return "nothing happens";
  for (const [index, event] of events.entries()) {
    const recorded = ahead[index];
    if (recorded === undefined) return `${event.type} follows, where the record ends`;
    if (event.type !== recorded.type) return `${event.type} happens, ${recorded.type} is on record`;
    if (comparable(event) !== comparable(recorded))
      return `${event.type} differs: ${canonicalJson(event.data).slice(0, 500)}, on record is ${canonicalJson(recorded.data).slice(0, 500)}`;
  }
  return null;
}

/** Views get richer from build to build; what was asked is compared without. */
function comparable({ type, data }: RunEvent): string {
  return canonicalJson(type === "call.requested" ? { ...data, view: null } : data);
}

function viewOf(event: RunEvent | undefined): string | null {
  return event?.type === "call.requested" ? event.data.view.blob : null;
}

interface Reference {
  readonly blob: string;
  readonly manifest: boolean;
}

function referencesIn(value: unknown): Reference[] {
  if (typeof value !== "object" || value === null) return [];
  const own =
    "blob" in value && typeof value.blob === "string" && "bytes" in value ? [{ blob: value.blob, manifest: "manifest" in value }] : [];
  return [...own, ...Object.values(value).flatMap(referencesIn)];
}
