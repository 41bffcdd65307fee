import { recordsNeeded } from "../../src/core/harness/decide/adjudicate.js";
import { decide } from "../../src/core/harness/decide.js";
import { type Due, due } from "../../src/core/harness/due.js";
import { evolve } from "../../src/core/harness/evolve.js";
import { initialState, type RunState } from "../../src/core/harness/state.js";
import type { StoredEvent } from "../../src/core/ports/ledger.js";
import type { ReusedCalibration } from "../../src/core/protocol/calibration.js";
import { candidateDigest, manifestOf } from "../../src/core/protocol/candidate.js";
import { canonicalJson, digestOf } from "../../src/core/protocol/canonical.js";
import type { Answer, Command } from "../../src/core/protocol/commands.js";
import { currentVersion, type StoredRunEvent } from "../../src/core/protocol/events.js";
import type { BlobReference, ManifestReference } from "../../src/core/protocol/ids.js";
import type { StageOutcome } from "../../src/core/protocol/outcome.js";
import type { RunConfiguration } from "../../src/core/protocol/run.js";

/** What the world does when it is asked; the core's tests script it. */
export interface World {
  answer(call: string, round: number): Answer | "fail";
  measure(
    subject: string,
    seed: number,
    reason: string,
  ): { readonly value: number } | { readonly status: "crashed" | "timed_out" | "no_result" } | "interrupted" | "evaluator_failure";
}

export const outcome: StageOutcome = {
  exitCode: 0,
  signal: null,
  limit: null,
  wallMs: 5,
  cpuMs: 4,
  peakMemoryBytes: 1000,
  stdout: { bytes: 0, omittedBytes: 0 },
  stderr: { bytes: 0, omittedBytes: 0 },
  outputs: [],
  guarantees: {
    sandbox: "bubblewrap",
    networkOff: true,
    filesystemIsolated: true,
    unprivileged: true,
    memory: "polled",
    processes: "rlimit",
  },
};

export function blobOf(text: string): BlobReference {
  return { blob: digestOf(text), bytes: text.length };
}

/** A candidate that differs from others by its text alone. */
export function candidateOf(text: string): { reference: ManifestReference; manifest: ReturnType<typeof manifestOf> } {
  const manifest = manifestOf([{ path: "a.txt", digest: digestOf(text), bytes: text.length, executable: false }]);
  return { reference: { blob: candidateDigest(manifest), bytes: canonicalJson(manifest).length, manifest: true }, manifest };
}

export function proposal(text: string): Answer {
  const { reference, manifest } = candidateOf(text);
  return {
    kind: "proposal",
    hypothesis: `try ${text}`,
    expectedGain: null,
    respondsTo: [],
    commitment: {},
    candidate: reference,
    manifest,
    edited: ["a.txt"],
  };
}

/** A run without processes and files: the core, an event list, and a scripted world. */
export class SimulatedRun {
  readonly state: RunState = initialState();
  readonly events: StoredRunEvent[] = [];
  at = 1000;

  constructor(
    readonly configuration: RunConfiguration,
    private readonly world: World,
    calibration: ReusedCalibration | null = null,
  ) {
    const baseline = candidateOf("baseline").reference;
    this.dispatch({ at: this.at, type: "start", configuration, baseline, references: [], queue: [], calibration });
    this.dispatch({ at: this.at, type: "open_span", epoch: 1, previousEndedAt: null, drives: true });
  }

  dispatch(command: Command): void {
    for (const event of decide(this.state, command).events) {
      // Through JSON, as a ledger would: nothing of the state may hang on an object that the event shares.
      const stored = JSON.parse(JSON.stringify({ ...event, sequence: this.events.length + 1, at: command.at })) as StoredRunEvent;
      this.events.push(stored);
      evolve(this.state, structuredClone(stored));
    }
  }

  /** Performs what is due, one thing after the other, until nothing is or `steps` are used up. */
  work(steps = 10_000, check: () => void = () => undefined): void {
    for (let step = 0; step < steps; step++) {
      const before = this.events.length;
      for (const item of due(this.state, this.at)) {
        this.perform(item);
        check();
        if (this.events.length !== before) break;
      }
      if (this.events.length === before) return;
    }
  }

  stored(): StoredEvent[] {
    return this.events.map((event) => ({
      sequence: event.sequence,
      at: event.at,
      type: event.type,
      version: currentVersion(event.type),
      data: event.data,
    }));
  }

  perform(item: Due): void {
    this.at += 10;
    const { at } = this;
    switch (item.kind) {
      case "call":
        return this.answer(item.call, item.round);
      case "measurement":
        return this.measure(item.measurement);
      case "adjudicate":
        return this.dispatch({
          at,
          type: "adjudicate",
          trial: item.trial,
          records: new Map(recordsNeeded(this.state, item.trial).map((each) => [each.blob, { metric: "score", ids: [], values: [] }])),
        });
      case "wake_up":
        return this.dispatch({ at, type: "fire_wake_up", wakeUp: item.wakeUp });
      case "exhaust":
        return this.dispatch({ at, type: "exhaust", cap: item.cap });
      case "advance":
      case "conclude":
        return this.dispatch({ at, type: item.kind });
    }
  }

  private answer(call: string, round: number): void {
    const answer = this.world.answer(call, round);
    const bill = { usage: { trials: 0, costUsd: 0, tokens: 0, computeMs: 1 }, model: null, traffic: null };
    if (answer === "fail")
      this.dispatch({ at: this.at, type: "fail_call", call, kind: "researcher_failed", message: "scripted", todo: "", ...bill });
    else this.dispatch({ at: this.at, type: "answer_call", call, output: blobOf(call), answer, ...bill });
  }

  private measure(id: string): void {
    const { at } = this;
    if (this.state.measurements[id]?.running === false) this.dispatch({ at, type: "start_attempt", measurement: id });
    const measurement = this.state.measurements[id];
    if (measurement === undefined) return;
    this.dispatch({ at, type: "start_stage", measurement: id, stage: "train", repeat: 1 });
    this.dispatch({ at, type: "end_stage", measurement: id, stage: "train", repeat: 1, outcome, stdout: blobOf(""), stderr: blobOf("") });
    this.dispatch({
      at,
      type: "end_attempt",
      measurement: id,
      result: this.result(this.world.measure(measurement.subject, measurement.seed, measurement.reason)),
      usage: { trials: 0, costUsd: 0, tokens: 0, computeMs: 4 },
    });
  }

  private result(measured: ReturnType<World["measure"]>): Extract<Command, { type: "end_attempt" }>["result"] {
    if (measured === "interrupted") return { kind: "interrupted", reason: "scripted" };
    if (measured === "evaluator_failure") return { kind: "evaluator_failure", stage: "measure", reason: "scripted" };
    if ("status" in measured) return { kind: "ended", status: measured.status, stage: "train", reason: "scripted", values: {} };
    return {
      kind: "measured",
      measured: { values: { score: measured.value }, selfReported: [], guarantees: outcome.guarantees, wallSeconds: {} },
      records: null,
      outputs: [],
    };
  }
}
