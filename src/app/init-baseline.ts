import { randomBytes } from "node:crypto";
import { readCandidate } from "../adapters/environments/freeze.js";
import { giveToSandbox } from "../adapters/sandbox/identity.js";
import { assertUsable, probeSandbox } from "../adapters/sandbox/probe.js";
import { pipelineStages } from "../core/harness/decide/measurements.js";
import type { CapturedStreams, Executor } from "../core/ports/executor.js";
import { digestOf } from "../core/protocol/canonical.js";
import type { Environment } from "../core/protocol/environment.js";
import { type AloneResult, measureAlone } from "../research/engine/measure-alone.js";
import { freezeFolder, type Host, type ReadyEnvironment, readyEnvironment } from "./environments.js";
import { withExecutor } from "./executors.js";
import { gpusFor } from "./gpus.js";
import { hintsFor } from "./init-hints.js";

/** The baseline, measured once, as a run would measure it. */
export interface Baseline {
  /** `measured`, or the status that a trial would end with; `interrupted` when it was stopped. */
  readonly status: string;
  readonly values: Readonly<Record<string, number>> | null;
  readonly reason: string | null;
  /** Executions that came to an end; 0 where nothing was started. */
  readonly stages: number;
  /** From laying out the workspace to reading the result: what a trial takes of this machine. */
  readonly trialMs: number;
  /** Of the processes alone. */
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakMemoryBytes: number;
  /** The end of what the last stage printed. */
  readonly output: string;
  /** What to do about a failure. */
  readonly hints: readonly string[];
}

/** Hears how a measurement goes on, about once a second. */
export interface BaselineListener {
  readonly progress: (line: string) => void;
  readonly live: (stage: string, elapsedMs: number, lastLine: string) => void;
}

const keptOutput = 4000;
const lookEveryMs = 1000;

/** Measures the baseline of a folder's environment once: no run, no record. An abort stops it and what it started. */
export async function measureBaseline(
  host: Host,
  folder: string,
  seedOffset: number,
  listener: BaselineListener,
  signal: AbortSignal,
): Promise<Baseline> {
  assertUsable(await probeSandbox());
  const { loaded, frozen } = await freezeFolder(host, folder);
  const key = `init-${process.pid}-${randomBytes(4).toString("hex")}`;
  return withExecutor(host, key, async ({ executor, scratch }) => {
    const ready = await readyEnvironment(host, frozen, executor, "bubblewrap", listener.progress);
    const candidate = await readCandidate(loaded.folder, loaded.baseline);
    const seed = frozen.environment.seed + seedOffset;
    return await one({ host, executor, ready, candidate, scratch, id: `${key}/baseline`, seed, folder: loaded.folder, listener, signal });
  });
}

interface Once {
  readonly host: Host;
  readonly executor: Executor;
  readonly ready: ReadyEnvironment;
  readonly candidate: Awaited<ReturnType<typeof readCandidate>>;
  readonly scratch: string;
  readonly id: string;
  readonly seed: number;
  readonly folder: string;
  readonly listener: BaselineListener;
  readonly signal: AbortSignal;
}

async function one(once: Once): Promise<Baseline> {
  const { executor, ready, candidate, listener, signal } = once;
  const { environment } = ready.prepared;
  const printed = new Map<string, Uint8Array>();
  const watch = new Watch(executor, listener, signal);
  const pipeline = pipelineStages(environment.stages);
  const since = performance.now();
  try {
    const result = await measureAlone(
      {
        prepared: ready.prepared,
        executor,
        sandbox: "bubblewrap",
        giveToSandbox,
        hostEnvironment: once.host.variables,
        scratch: once.scratch,
        gpus: gpusFor(environment, once.host, "bubblewrap"),
        blob: (digest) => candidate.contents.get(digest) ?? new Uint8Array(),
        putBlob: (bytes) => {
          const blob = digestOf(bytes);
          printed.set(blob, bytes);
          return { blob, bytes: bytes.byteLength };
        },
      },
      once.id,
      candidate.manifest,
      once.seed,
      {
        belongs: (stage) => pipeline.includes(stage),
        purpose: "in-loop",
        heldoutFolder: null,
        onStart: (id, stage) => watch.begin(id, stage.name),
        halted: () => signal.aborted,
      },
    );
    return baselineOf(result, performance.now() - since, environment, once.folder, printed, signal.aborted);
  } finally {
    watch.end();
  }
}

function baselineOf(
  result: AloneResult,
  trialMs: number,
  environment: Environment,
  folder: string,
  printed: ReadonlyMap<string, Uint8Array>,
  aborted: boolean,
): Baseline {
  const last = result.stages.at(-1);
  const text = (blob: string | undefined): string => Buffer.from(printed.get(blob ?? "") ?? new Uint8Array()).toString("utf8");
  const output = `${text(last?.stdout.blob)}${text(last?.stderr.blob)}`;
  const status = aborted ? "interrupted" : result.ended;
  const failed = status !== "measured" && status !== "interrupted";
  return {
    status,
    values: aborted ? null : result.values,
    reason: aborted ? "it was stopped" : result.reason,
    stages: result.stages.length,
    trialMs,
    wallMs: result.wallMs,
    cpuMs: result.stages.reduce((sum, each) => sum + each.outcome.cpuMs, 0),
    peakMemoryBytes: Math.max(0, ...result.stages.map((each) => each.outcome.peakMemoryBytes)),
    output: output.slice(-keptOutput),
    hints: failed ? hintsFor(folder, environment, { status, output: `${output}\n${result.reason ?? ""}` }) : [],
  };
}

/** Looks at what a stage prints while it runs, and stops it when somebody wants to leave. */
class Watch {
  private timer: NodeJS.Timeout | undefined;
  private running: string | null = null;
  private readonly stop = (): void => {
    if (this.running !== null) this.executor.stop(this.running).catch(() => undefined);
  };

  constructor(
    private readonly executor: Executor,
    private readonly listener: BaselineListener,
    private readonly signal: AbortSignal,
  ) {
    signal.addEventListener("abort", this.stop);
  }

  begin(id: string, stage: string): void {
    clearInterval(this.timer);
    this.running = id;
    if (this.signal.aborted) return this.stop();
    const since = Date.now();
    const look = async (): Promise<void> => {
      const streams = await this.executor.output(id).catch(() => null);
      if (this.running === id) this.listener.live(stage, Date.now() - since, streams === null ? "" : lastLineOf(streams));
    };
    this.timer = setInterval(() => void look(), lookEveryMs);
  }

  end(): void {
    clearInterval(this.timer);
    this.running = null;
    this.signal.removeEventListener("abort", this.stop);
  }
}

function lastLineOf({ stdout, stderr }: CapturedStreams): string {
  const text = Buffer.concat([stdout.head, stdout.tail, stderr.head, stderr.tail]).subarray(-keptOutput).toString("utf8");
  return (
    text
      .trimEnd()
      .split(/[\r\n]/)
      .at(-1) ?? ""
  );
}
