import { type Due, due } from "../src/core/harness/due.js";
import { configurationOf, trialOf } from "../src/core/harness/state.js";
import type { Ledger, NewBlob, NewEvent, StoredEvent } from "../src/core/ports/ledger.js";
import { nothing } from "../src/core/protocol/budget.js";
import { canonicalJson } from "../src/core/protocol/canonical.js";
import type { EventData } from "../src/core/protocol/events.js";
import { readMeasurement } from "../src/core/protocol/measurement.js";
import { settlingCommand } from "../src/research/engine/settling.js";
import { type AnyView, roleNamed } from "../src/research/roles/registry.js";
import { manifestAt } from "../src/research/roles/role.js";
import { Run } from "../src/research/runner/run.js";
import { answerFor, fails, measurementFile, outcomeOf, printedBy, storeBaseline, worldConfiguration } from "./scripted-world.js";

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const mostEvents = 2000;

/**
 * A run made by the core itself, as fast as it goes: every decision, fold, view and blob is real, stages answer at
 * once, and events reach the disk in large batches. Ends with `trials` searched trials, the checkpoints that the run's
 * own rule left, and no clean end, as after a kill.
 */
export function simulateRun(ledger: Ledger, trials: number, answer: (number: number) => Uint8Array = answerFor): void {
  const batches = new InBatches(ledger);
  let now = 1.7e12;
  const run = Run.open(batches, () => {
    now += 7;
    return now;
  });
  run.dispatch({ type: "start", configuration: worldConfiguration(), baseline: storeBaseline(run), references: [], queue: [] });
  run.dispatch({ type: "open_span", epoch: 1, previousEndedAt: null, drives: true });
  new Simulation(run, answer).search(trials);
  batches.flush();
}

/**
 * Drives a run without processes and stage folders: the loop over what is due, the roles' documents and answers, the
 * ledger; written to disk where the runner writes, before a call and before a stage.
 */
export class Simulation {
  /** Time that the researcher, the stages and the evaluator of this world took: no harness's time. */
  worldMs = 0;

  constructor(
    private readonly run: Run,
    /** What the researcher says to its call of this number. */
    private readonly answerOf: (number: number) => Uint8Array = answerFor,
  ) {}

  /** Until so many more trials have ended. */
  search(trials: number): void {
    const goal = this.run.state.searchTrialsEnded + trials;
    while (this.run.state.searchTrialsEnded < goal) this.step();
    this.run.commit();
  }

  /** Does all that is due before the next role call, and names that call, which is left to whoever asked. */
  nextCall(): Extract<Due, { kind: "call" }> {
    for (;;) {
      const [first] = due(this.run.state, this.run.now());
      if (first?.kind === "call") return first;
      this.step();
    }
  }

  private step(): void {
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
      case "session":
        throw new Error("long sessions are not part of this world");
      default:
        run.take(settlingCommand(item, run.state, run.ledger));
    }
  }

  /** Answers a call as this world's researcher does. */
  answer(id: string): void {
    const { run } = this;
    const call = run.state.calls[id];
    if (call === undefined) return;
    run.commit();
    const blobs = { blob: (digest: string) => run.ledger.blob(digest), putBlob: (bytes: Uint8Array) => run.putBlob(bytes) };
    const role = roleNamed(call.role);
    const view = JSON.parse(decoder.decode(blobs.blob(call.view.blob))) as AnyView;
    JSON.stringify(role.prompt(role.document(view, configurationOf(run.state).environment, blobs)));
    const raw = this.byWorld(() => this.answerOf(this.calls));
    const answer = role.read(raw, trialOf(run.state, call.base).candidate.blob, blobs);
    run.take({ type: "answer_call", call: id, output: run.putBlob(raw), answer, usage: nothing, model: null, traffic: null });
  }

  private measure(id: string): void {
    const { run } = this;
    run.take({ type: "start_attempt", measurement: id });
    const measurement = run.state.measurements[id];
    if (measurement === undefined) throw new Error(`${id} is due and not open`);
    manifestAt(trialOf(run.state, measurement.subject).candidate.blob, run.ledger);
    const isSearched = measurement.reason === "first";
    const number = isSearched ? this.calls : -Number(id.slice(1));
    const printed = this.byWorld(() => printedBy(number));
    const failed = isSearched && fails(number);
    this.stage(id, "train", failed ? 1 : 0, printed);
    if (failed) return this.end(id, { kind: "ended", status: "crashed", stage: "train", reason: "train exited with code 1", values: {} });
    const written = this.byWorld(() => measurementFile(number));
    this.stage(id, "measure", 0, new Uint8Array());
    const read = readMeasurement(written, ["score"]);
    if (read.kind !== "measured" || read.records === null) throw new Error(`the scripted measurement is ${read.kind}`);
    const measured = { values: read.values, selfReported: [], guarantees: outcomeOf(0, printed).guarantees, wallSeconds: {} };
    return this.end(id, { kind: "measured", measured, records: run.putBlob(encoder.encode(canonicalJson(read.records))), outputs: [] });
  }

  private stage(measurement: string, stage: string, exitCode: number, printed: Uint8Array): void {
    const { run } = this;
    run.take({ type: "start_stage", measurement, stage, repeat: 1 });
    run.commit();
    const [stdout, stderr] = [run.putBlob(printed), run.putBlob(new Uint8Array())];
    run.take({ type: "end_stage", measurement, stage, repeat: 1, outcome: outcomeOf(exitCode, printed), stdout, stderr });
  }

  private end(measurement: string, result: EventData<"attempt.ended">["result"]): void {
    this.run.take({ type: "end_attempt", measurement, result, usage: { ...nothing, computeMs: 980.5 } });
  }

  private get calls(): number {
    return this.run.state.counters.call;
  }

  private byWorld<T>(work: () => T): T {
    const start = performance.now();
    const made = work();
    this.worldMs += performance.now() - start;
    return made;
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
