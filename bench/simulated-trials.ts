import { recordsNeeded } from "../src/core/harness/decide/adjudicate.js";
import { type Due, due } from "../src/core/harness/due.js";
import { configurationOf, trialOf } from "../src/core/harness/state.js";
import type { ProposalView } from "../src/core/harness/views.js";
import type { Ledger, NewBlob, NewEvent, StoredEvent } from "../src/core/ports/ledger.js";
import { nothing } from "../src/core/protocol/budget.js";
import { canonicalJson } from "../src/core/protocol/canonical.js";
import type { RecordSet } from "../src/core/protocol/measurement.js";
import { proposalDocument, readAnswer } from "../src/research/roles/proposal.js";
import { Run } from "../src/research/runner/run.js";
import { answerFor, fails, measurementOf, outcomeOf, printedBy, storeBaseline, worldConfiguration } from "./scripted-world.js";

const decoder = new TextDecoder();
const mostEvents = 2000;

/**
 * A run made by the core itself, as fast as it goes: every decision, fold, view and blob is real, stages answer at
 * once, and events reach the disk in batches instead of one transaction each. Ends with `trials` searched trials, the
 * checkpoints that the run's own rule left, and no clean end, as after a kill.
 */
export function simulateRun(ledger: Ledger, trials: number): void {
  const batches = new InBatches(ledger);
  let now = 1.7e12;
  const run = Run.open(batches, () => {
    now += 7;
    return now;
  });
  run.dispatch({ type: "start", configuration: worldConfiguration(), baseline: storeBaseline(run), references: [] });
  run.dispatch({ type: "open_span", epoch: 1, previousEndedAt: null });
  const simulation = new Simulation(run);
  while (run.state.searchTrialsEnded < trials) simulation.step();
  batches.flush();
}

class Simulation {
  private calls = 0;

  constructor(private readonly run: Run) {}

  step(): void {
    const before = this.run.state.version;
    for (const item of due(this.run.state, this.run.now())) {
      this.perform(item);
      if (this.run.state.version !== before) return;
    }
    throw new Error("nothing is due in a run that is not over");
  }

  private perform(item: Due): void {
    const { run } = this;
    switch (item.kind) {
      case "call":
        return this.answer(item.call);
      case "measurement":
        return this.measure(item.measurement);
      case "adjudicate":
        return run.dispatch({ type: "adjudicate", trial: item.trial, records: new Map(recordsNeeded(run.state, item.trial).map(({ blob }) => [blob, JSON.parse(decoder.decode(run.ledger.blob(blob))) as RecordSet])) });
      case "advance":
        return run.dispatch({ type: "advance" });
      default:
        throw new Error(`${item.kind} is not part of this world`);
    }
  }

  private answer(id: string): void {
    const { run } = this;
    const call = run.state.calls[id];
    if (call === undefined) return;
    const blobs = { blob: (digest: string) => run.ledger.blob(digest), putBlob: (bytes: Uint8Array) => run.putBlob(bytes) };
    proposalDocument(JSON.parse(decoder.decode(blobs.blob(call.view.blob))) as ProposalView, configurationOf(run.state).environment, blobs);
    this.calls += 1;
    const raw = answerFor(this.calls);
    run.dispatch({ type: "answer_call", call: id, output: run.putBlob(raw), answer: readAnswer(raw, trialOf(run.state, call.base).candidate.blob, blobs), usage: nothing });
  }

  private measure(id: string): void {
    const { run } = this;
    const { calls: number } = this;
    run.dispatch({ type: "start_attempt", measurement: id });
    const failed = number > 0 && fails(number);
    const printed = printedBy(number);
    this.stage(id, "train", failed ? 1 : 0, printed);
    if (!failed) this.stage(id, "measure", 0, new Uint8Array());
    const { score, records } = measurementOf(run.state.measurements[id]?.reason === "calibration" ? -Number(id.slice(1)) : number);
    const usage = { ...nothing, computeMs: 980.5 };
    const { guarantees } = outcomeOf(0, printed);
    if (failed) run.dispatch({ type: "end_attempt", measurement: id, usage, result: { kind: "ended", status: "crashed", stage: "train", reason: "train exited with code 1", values: {} } });
    else {
      const stored = run.putBlob(new TextEncoder().encode(canonicalJson(records)));
      run.dispatch({ type: "end_attempt", measurement: id, usage, result: { kind: "measured", measured: { values: { score }, selfReported: [], guarantees, wallSeconds: {} }, records: stored, outputs: [] } });
    }
  }

  private stage(measurement: string, stage: string, exitCode: number, printed: Uint8Array): void {
    const { run } = this;
    run.dispatch({ type: "start_stage", measurement, stage, repeat: 1 });
    run.dispatch({ type: "end_stage", measurement, stage, repeat: 1, outcome: outcomeOf(exitCode, printed), stdout: run.putBlob(printed), stderr: run.putBlob(new Uint8Array()) });
  }
}

/** A ledger that writes many appends in one transaction: for making long runs, never for keeping them. */
class InBatches implements Ledger {
  private readonly waiting: NewEvent[] = [];

  constructor(private readonly inner: Ledger) {}

  get head(): number {
    return this.inner.head + this.waiting.length;
  }

  get chain(): string {
    this.flush();
    return this.inner.chain;
  }

  append(expectedHead: number, at: number, events: readonly NewEvent[], blobs: readonly NewBlob[] = []): readonly StoredEvent[] {
    for (const { bytes } of blobs) this.inner.putBlob(bytes);
    this.waiting.push(...events);
    const stored = events.map((event, index) => ({ ...event, sequence: expectedHead + index + 1, at }));
    if (this.waiting.length >= mostEvents) this.flush();
    return stored;
  }

  flush(): void {
    if (this.waiting.length > 0) this.inner.append(this.inner.head, 1.7e12, this.waiting.splice(0));
  }

  saveCheckpoint(checkpoint: Parameters<Ledger["saveCheckpoint"]>[0]): void {
    this.flush();
    this.inner.saveCheckpoint(checkpoint);
  }

  read(after?: number): IterableIterator<StoredEvent> {
    this.flush();
    return this.inner.read(after);
  }

  blob(digest: string): Uint8Array {
    return this.inner.blob(digest);
  }

  hasBlob(digest: string): boolean {
    return this.inner.hasBlob(digest);
  }

  putBlob(bytes: Uint8Array): string {
    return this.inner.putBlob(bytes);
  }

  loadCheckpoint(foldVersion: string): ReturnType<Ledger["loadCheckpoint"]> {
    return this.inner.loadCheckpoint(foldVersion);
  }

  lastHeartbeat(): { readonly at: number } | null {
    return this.inner.lastHeartbeat();
  }

  heartbeat(at: number): void {
    this.inner.heartbeat(at);
  }

  subscribe(listener: Parameters<Ledger["subscribe"]>[0]): () => void {
    return this.inner.subscribe(listener);
  }

  close(): void {
    this.flush();
    this.inner.close();
  }
}
