import { join } from "node:path";
import { pipelineStages } from "../../core/harness/decide/measurements.js";
import type { OpenMeasurement } from "../../core/harness/state.js";
import type { Executor, Found } from "../../core/ports/executor.js";
import type { GpuAssignment } from "../../core/ports/gpus.js";
import type { PreparedEnvironment } from "../../core/ports/prepared-environment.js";
import type { Amount } from "../../core/protocol/budget.js";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import { digestOf } from "../../core/protocol/canonical.js";
import type { Command } from "../../core/protocol/commands.js";
import type { Environment, Stage } from "../../core/protocol/environment.js";
import type { EventData } from "../../core/protocol/events.js";
import type { BlobReference } from "../../core/protocol/ids.js";
import { judgeStage, type StageJudgement } from "../../core/protocol/status.js";
import { AttemptFolders, CandidateLayoutError, type GiveToSandbox } from "./attempt-folders.js";
import { conclude, type EndedStage, faulty, readEvaluatorFile, selectedOutput } from "./conclude.js";
import type { Slots } from "./slots.js";
import { stageExecution } from "./stage-execution.js";

export type AttemptResult = EventData<"attempt.ended">["result"];

/** What the pipeline needs of the run that it works for. */
export interface PipelineHost {
  readonly prepared: PreparedEnvironment;
  readonly executor: Executor;
  readonly slots: Slots;
  readonly sandbox: "bubblewrap" | "none";
  readonly giveToSandbox: GiveToSandbox;
  readonly hostEnvironment: Readonly<Record<string, string | undefined>>;
  readonly scratch: string;
  readonly blob: (digest: string) => Uint8Array;
  readonly putBlob: (bytes: Uint8Array) => BlobReference;
  /** Records; on disk at the latest when this turn of the event loop ends. False when the measurement is no longer open (its trial was cancelled meanwhile). */
  readonly record: (command: StageCommand) => boolean;
  /** Puts on disk what was recorded: before anything is done outside that rests on it. */
  readonly commit: () => void;
  /** Resolves once what was recorded is on disk, after everything else of this turn had its say. */
  readonly settled: () => Promise<void>;
  /** Halts the run until a person has looked. */
  readonly suspend: (reason: string, todo: string) => void;
  /** Whether to stop before the next stage: the run was paused or suspended. */
  readonly halted: () => boolean;
}

type EndedOrGone = Exclude<Found, { state: "running" | "unknown" }>;
type WithoutTime<C> = C extends unknown ? Omit<C, "at"> : never;
export type StageCommand = WithoutTime<Extract<Command, { type: "start_stage" | "end_stage" | "end_attempt" }>>;

/**
 * `halted`: the run was paused before it began; `closed`: nobody wants the measurement any more; `no_place`: the
 * candidate's files collide with the environment's.
 */
type Performed = { readonly kind: "ended" | "halted" | "closed" } | { readonly kind: "gone" | "no_place"; readonly reason: string };

/** Largest declared output that is collected unless a gate allows more, in bytes. */
const defaultCollectBytes = 256 * 1024 * 1024;

/** Largest declared output that is collected, in bytes. */
export function collectCap(gates: Environment["gates"]): number {
  return Math.max(defaultCollectBytes, ...gates.flatMap((gate) => ("artifact" in gate ? [gate.atMostBytes] : [])));
}

/**
 * Takes one attempt of a measurement through the stages that are still to run. After a crash it is called again with
 * the same measurement: stages that ended are not run twice, one that still runs is adopted, one that vanished
 * interrupts the attempt.
 */
export class Pipeline {
  private readonly folders: AttemptFolders;
  private readonly stages: readonly Stage[];
  private readonly ended: EndedStage[] = [];

  constructor(
    private readonly host: PipelineHost,
    private readonly measurement: OpenMeasurement,
    private readonly manifest: CandidateManifest,
  ) {
    this.folders = new AttemptFolders(join(host.scratch, `${measurement.id}.${measurement.attempt}`), host.giveToSandbox);
    this.stages = pipelineStages(host.prepared.environment.stages);
  }

  /** Resolves when the attempt's end is recorded, or when the run was halted between two stages. */
  async run(): Promise<void> {
    for (const stage of this.stages) {
      for (let repeat = 1; repeat <= stage.repeats; repeat++) {
        if (!this.alreadyEnded(stage, repeat)) {
          if (this.host.halted()) return;
          const performed = await this.perform(stage, repeat);
          if (performed.kind === "halted") return;
          if (performed.kind === "closed") return this.cleanUp();
          if (performed.kind === "no_place") return this.end(faulty("no_place", stage.name, performed.reason));
          if (performed.kind === "gone") return this.end({ kind: "interrupted", reason: performed.reason.slice(0, 4000) });
        }
        const judgement = this.judge(stage);
        if (judgement.kind !== "continue") return this.end(this.resultOf(judgement, stage));
      }
    }
    return this.end(await conclude(this.host, this.folders, this.ended, "in-loop"));
  }

  private alreadyEnded(stage: Stage, repeat: number): boolean {
    const known = this.measurement.endedStages[`${stage.name}#${repeat}`];
    if (known === undefined) return false;
    if (!this.ended.some((each) => each.stage.name === stage.name && each.repeat === repeat))
      this.ended.push({ stage, repeat, executionId: this.executionId(stage, repeat), ...known });
    return true;
  }

  /** Runs or adopts one execution. */
  private async perform(stage: Stage, repeat: number): Promise<Performed> {
    const id = this.executionId(stage, repeat);
    const name = { measurement: this.measurement.id, stage: stage.name, repeat };
    const taken = await this.host.slots.take({ ...stage.limits, exclusive: stage.exclusive, execution: id });
    try {
      if (this.host.halted() || (await this.suspendChanged()) !== null) return { kind: "halted" };
      if (!this.host.record({ type: "start_stage", ...name })) return this.unwanted();
      const found = await this.startOrAdopt(id, stage, repeat, taken.gpus);
      if (found.state === "gone") return { kind: "gone", reason: found.reason };
      const streams = await this.host.executor.output(id);
      const stdout = this.host.putBlob(joined(streams.stdout, found.outcome.stdout.omittedBytes));
      const stderr = this.host.putBlob(joined(streams.stderr, found.outcome.stderr.omittedBytes));
      if (!this.host.record({ type: "end_stage", ...name, outcome: found.outcome, stdout, stderr })) return this.unwanted();
      this.ended.push({ stage, repeat, executionId: id, outcome: found.outcome, stdout, stderr });
      return { kind: "ended" };
    } catch (error) {
      if (error instanceof CandidateLayoutError) return { kind: "no_place", reason: error.message };
      // A mount that went away between the look and the start.
      if ((await this.suspendChanged()) !== null) return { kind: "halted" };
      throw error;
    } finally {
      taken.release();
    }
  }

  /** A record that was not taken: the runner is leaving and what lies here is needed again, or nobody wants it. */
  private unwanted(): Performed {
    return { kind: this.host.halted() ? "halted" : "closed" };
  }

  private async startOrAdopt(id: string, stage: Stage, repeat: number, gpus: GpuAssignment | null): Promise<EndedOrGone> {
    const found = await this.host.executor.find(id);
    if (found.state === "unknown") {
      const { prepared, sandbox, hostEnvironment } = this.host;
      const execution = await stageExecution({
        id,
        stage,
        repeat,
        seed: repeatSeed(this.measurement.seed, repeat),
        sandbox,
        prepared,
        folders: this.folders,
        manifest: this.manifest,
        content: this.host.blob,
        hostEnvironment,
        gpus,
        collectMaxBytes: collectCap(prepared.environment.gates),
        selected: selectedOutput(this.ended)?.selected ?? null,
      });
      this.host.commit();
      await this.host.executor.start(execution);
    }
    return this.host.executor.wait(id);
  }

  private judge(stage: Stage): StageJudgement {
    const last = this.ended.at(-1);
    if (last === undefined) return { kind: "continue" };
    const verdict = stage.trust === "evaluator" ? readEvaluatorFile(this.host, this.folders, stage, last) : null;
    return judgeStage(stage, last.outcome, verdict);
  }

  private resultOf(judgement: Exclude<StageJudgement, { kind: "continue" }>, stage: Stage): AttemptResult {
    if (judgement.kind === "evaluator_failure")
      return { kind: "evaluator_failure", stage: stage.name, reason: judgement.reason.slice(0, 4000) };
    return { kind: "ended", status: judgement.status, stage: stage.name, reason: judgement.reason.slice(0, 4000), values: {} };
  }

  /** What a stage would see is not what the run began with: the run stops, and says what changed. */
  private async suspendChanged(): Promise<string | null> {
    const changed = await this.host.prepared.changed();
    if (changed !== null && !this.host.halted()) this.host.suspend(changed.reason, changed.todo);
    return changed?.reason ?? null;
  }

  private async end(given: AttemptResult): Promise<void> {
    const changed = given.kind === "interrupted" ? null : await this.suspendChanged();
    // Nobody knows what its stages saw, so nothing was learnt about the candidate.
    const result: AttemptResult = changed === null ? given : { kind: "interrupted", reason: changed.slice(0, 4000) };
    const recorded = this.host.record({ type: "end_attempt", measurement: this.measurement.id, result, usage: this.usage() });
    // A runner that leaves records nothing more: what lies here is needed by the next one.
    if (!recorded && this.host.halted()) return;
    await this.cleanUp();
  }

  private usage(): Amount {
    return { trials: 0, costUsd: 0, tokens: 0, computeMs: this.ended.reduce((total, each) => total + each.outcome.cpuMs, 0) };
  }

  private async cleanUp(): Promise<void> {
    await this.host.settled();
    await this.host.executor.forget(`${this.measurement.id}.${this.measurement.attempt}/`);
    await this.folders.remove();
  }

  private executionId(stage: Stage, repeat: number): string {
    return `${this.measurement.id}.${this.measurement.attempt}/${stage.name}-${repeat}`;
  }
}

/** Seed of a repeat: the measurement's own for the first, then one derived from it. */
export function repeatSeed(seed: number, repeat: number): number {
  return repeat === 1 ? seed : Number.parseInt(digestOf(`repeat\n${seed}\n${repeat}`).slice(0, 8), 16) % 2 ** 31;
}

function joined(stream: { head: Uint8Array; tail: Uint8Array }, omittedBytes: number): Uint8Array {
  const middle = omittedBytes === 0 ? new Uint8Array() : new TextEncoder().encode(`\n[… ${omittedBytes} bytes were not kept …]\n`);
  return Buffer.concat([stream.head, middle, stream.tail]);
}
