import { decide } from "../../core/harness/decide.js";
import { type Due, due } from "../../core/harness/due.js";
import { evolve } from "../../core/harness/evolve.js";
import { initialState, type RunState, trialOf } from "../../core/harness/state.js";
import { organizationNamed } from "../../core/organizations/registry.js";
import type { Ledger } from "../../core/ports/ledger.js";
import { digestOf } from "../../core/protocol/canonical.js";
import type { Command, TimelessCommand } from "../../core/protocol/commands.js";
import { RefusedError } from "../../core/protocol/errors.js";
import { type EventData, parseEvent, type StoredRunEvent } from "../../core/protocol/events.js";
import type { RunConfiguration } from "../../core/protocol/run.js";
import { settlingCommand } from "../engine/settling.js";
import type { Blobs } from "../roles/role.js";
import { readSafely } from "../runner/role-call.js";
import { type RecordedAttempt, Recording } from "./recording.js";
import { startingCandidates } from "./starting-candidates.js";

/** How far a changed policy comes on what is on record. */
export interface Redecided {
  /** Trials that ended, of those asked for. */
  readonly trials: number;
  readonly calls: number;
  readonly leader: { readonly trial: string; readonly values: Readonly<Record<string, number>> } | null;
  readonly statuses: RunState["statuses"];
  /** The first question that nobody asked in the recorded run; null when the run came to its end. */
  readonly notOnRecord: string | null;
  readonly phase: RunState["phase"];
}

class NotOnRecord extends Error {}

/**
 * Runs another policy on recorded answers and measurements, up to the first that is not on record. Nothing is executed
 * and nobody is asked.
 */
export function redecide(source: Ledger, change: (recorded: RunConfiguration) => RunConfiguration): Redecided {
  const events = [...source.read()].map(parseEvent);
  const [started] = events;
  if (started?.type !== "run.started") throw new RefusedError({ expected: "a run that was started", found: "an empty ledger" });
  refuseFork(events);
  const changed = change(started.data.configuration);
  if (organizationNamed(changed.organization.name).asks === "sessions" || events.some((event) => event.type === "session.opened"))
    throw new RefusedError({
      expected: "a run of role calls, under a policy of role calls",
      found: "long sessions, which read live state: what they would do next is on nobody's record",
      todo: "`trialist replay` without another policy decides the run again as it was.",
    });
  const driver = new Driver(source, new Recording(events, source));
  driver.take({ type: "start", configuration: changed, ...startingCandidates(events) });
  driver.take({ type: "open_span", epoch: 1, previousEndedAt: null, drives: true });
  const notOnRecord = driver.workThrough(events.flatMap((event) => (event.type === "run.extended" ? [event.data] : [])));
  const { state } = driver;
  return {
    trials: state.searchTrialsEnded,
    calls: state.callCounts.answered + state.callCounts.refused + state.callCounts.failed,
    leader: state.leader,
    statuses: state.statuses,
    notOnRecord,
    phase: state.phase,
  };
}

/** Its questions were asked under two sets of caps and maybe by two researchers: no one policy would have asked them all. */
function refuseFork(events: readonly StoredRunEvent[]): void {
  const forked = events.findLast((event) => event.type === "run.forked");
  if (forked?.type !== "run.forked") return;
  const { run } = forked.data.from;
  throw new RefusedError({
    expected: "a run that was made by `trialist run`",
    found: `a fork of ${run}`,
    todo: `Decide ${run} under another policy; \`trialist replay\` without one decides the fork again as it was.`,
  });
}

class Driver {
  readonly state = initialState();
  private readonly views = new Map<string, Uint8Array>();
  private readonly blobs: Blobs;

  constructor(
    private readonly source: Ledger,
    private readonly recording: Recording,
  ) {
    const made = new Map<string, Uint8Array>();
    this.blobs = {
      blob: (digest) => this.views.get(digest) ?? made.get(digest) ?? source.blob(digest),
      putBlob: (bytes) => {
        const reference = { blob: digestOf(bytes), bytes: bytes.byteLength };
        made.set(reference.blob, bytes);
        return reference;
      },
    };
  }

  take(command: TimelessCommand): void {
    // Nothing of a policy hangs on the time here: a recorded run has no wall-clock left to keep to.
    const { events, blobs } = decide(this.state, { ...command, at: 0 } as Command);
    for (const { digest, bytes } of blobs) this.views.set(digest, bytes);
    for (const event of events) evolve(this.state, { ...event, sequence: this.state.version + 1, at: 0 } as StoredRunEvent);
  }

  /** Works to the end, and on where somebody extended the recorded run; not on record: as `work` says. */
  workThrough(extensions: readonly EventData<"run.extended">[]): string | null {
    for (const extension of extensions) {
      const notOnRecord = this.work();
      if (notOnRecord !== null) return notOnRecord;
      if (!this.extended(extension)) return null;
    }
    return this.work();
  }

  /** Under another policy the end may be another one, from which nobody would have gone on like this. */
  private extended(extension: EventData<"run.extended">): boolean {
    try {
      this.take({ type: "extend", ...extension });
      return true;
    } catch (error) {
      if (error instanceof RefusedError) return false;
      throw error;
    }
  }

  /** Performs what is due from the record. What is not on record, in words; null when the run came to its end. */
  work(): string | null {
    try {
      for (;;) {
        const before = this.state.version;
        const [item] = due(this.state, 0);
        if (item === undefined) return null;
        this.perform(item);
        if (this.state.version === before) return null;
      }
    } catch (error) {
      if (error instanceof NotOnRecord) return error.message;
      throw error;
    }
  }

  private perform(item: Due): void {
    switch (item.kind) {
      case "call":
        return this.answer(item.call);
      case "measurement":
        return this.measure(item.measurement);
      case "session":
        throw new NotOnRecord(`${item.session}, a long session`);
      default:
        return this.take(settlingCommand(item, this.state, this.source));
    }
  }

  private answer(id: string): void {
    const call = this.state.calls[id];
    if (call === undefined) return;
    const rounds = this.recording.roundsOf(call, this.blobs);
    if (rounds === undefined || rounds.length === 0) throw new NotOnRecord(`${id}, ${call.role} from ${call.base}`);
    for (const { type, data } of rounds) {
      // The record goes on after it: somebody resumed it then.
      if (this.state.phase === "suspended") this.take({ type: "resume", reason: "as on record" });
      const open = this.state.calls[id];
      if (open === undefined) return;
      const { usage, model, traffic } = data;
      if (type === "call.failed") {
        const { kind, message, todo } = data;
        if (kind !== "cancelled") this.take({ type: "fail_call", call: id, kind, message, todo, usage, model, traffic });
      } else if (data.output !== null) {
        const base = trialOf(this.state, open.base).candidate.blob;
        const answer = readSafely(open.role, this.source.blob(data.output.blob), base, this.blobs);
        this.take({ type: "answer_call", call: id, output: data.output, answer, usage, model, traffic });
      }
    }
  }

  private measure(id: string): void {
    const measurement = this.state.measurements[id];
    if (measurement === undefined) return;
    const attempt = this.recording.attemptOf(this.state, measurement);
    if (attempt === undefined) throw new NotOnRecord(`${id}, the ${measurement.reason} measurement of ${measurement.subject}`);
    for (const event of attempt) this.retell(id, event);
  }

  private retell(measurement: string, event: RecordedAttempt[number]): void {
    switch (event.type) {
      case "attempt.started":
        return this.take({ type: "start_attempt", measurement });
      case "stage.started":
        return this.take({ type: "start_stage", measurement, stage: event.data.stage, repeat: event.data.repeat });
      case "stage.ended": {
        const { stage, repeat, outcome, stdout, stderr } = event.data;
        return this.take({ type: "end_stage", measurement, stage, repeat, outcome, stdout, stderr });
      }
      case "attempt.ended":
        return this.take({ type: "end_attempt", measurement, result: event.data.result, usage: event.data.usage });
    }
  }
}
