import { spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createLocalExecutor } from "../src/adapters/executors/local.js";
import { openSqliteLedger } from "../src/adapters/ledger/sqlite-ledger.js";
import { giveToSandbox } from "../src/adapters/sandbox/identity.js";
import { assertUsable, probeSandbox } from "../src/adapters/sandbox/probe.js";
import type { Environment } from "../src/core/protocol/environment.js";
import type { StoredRunEvent } from "../src/core/protocol/events.js";
import { Slots } from "../src/research/engine/slots.js";
import { Run } from "../src/research/runner/run.js";
import { Runner } from "../src/research/runner/runner.js";
import { diskFolder } from "./ledger-events.js";
import { type BenchResult, judged } from "./result.js";
import { preparedEnvironment, scriptedResearcher, storeBaseline, worldConfiguration, worldEnvironment } from "./scripted-world.js";

const bar = 0.97;
const slots = 2;
const fullTrials = 200;
const quickTrials = 40;

/** Seconds, and the part of the time in which the slots were busy. */
interface Kept {
  readonly seconds: number;
  readonly busy: number;
}

/**
 * How busy two slots are kept by trials of one second each: the real runner, ledger, local executor and bubblewrap, with
 * a researcher in this process.
 *
 * Busy time of ours: the sum of `outcome.wallMs` over the searched trials' stages (from the start of a stage's process to
 * its exit), over 2 × the time from the first `stage.started` to the last `stage.ended`. Of `xargs -P 2` with the same
 * command: all of its time but the one at the end in which its last job runs alone, which flatters it a little.
 */
export async function slotsBusy(full: boolean): Promise<BenchResult[]> {
  const trials = full ? fullTrials : quickTrials;
  return [await compare("slots-busy-sleep", "sleep 1", trials), await compare("slots-busy-cpu", spin(await spinsPerSecond()), trials)];
}

async function compare(name: string, command: string, trials: number): Promise<BenchResult> {
  // The limit's jobs before and after ours, so that a drift of the machine falls on both.
  const before = await bare(command, trials / 2);
  const ours = await run(command, trials);
  const after = await bare(command, trials / 2);
  const limit: Kept = { seconds: before.seconds + after.seconds, busy: (before.busy + after.busy) / 2 };
  const percent = (kept: Kept): string => `${(kept.busy * 100).toFixed(1)} % busy, ${kept.seconds.toFixed(1)} s`;
  const row = {
    name,
    value: ours.busy / limit.busy,
    unit: `of xargs -P ${slots}`,
    ours: percent(ours),
    limit: percent(limit),
    note: `${trials} trials${trials === fullTrials ? "" : `; --full makes ${fullTrials}`}; trials a second, of xargs: ${(limit.seconds / ours.seconds).toFixed(3)}`,
  };
  return judged(row, { atLeast: bar });
}

const scored = `echo "score 1"`;

async function bare(command: string, jobs: number): Promise<Kept> {
  const start = performance.now();
  const ends: number[] = [];
  const script = `seq ${jobs} | xargs -P ${slots} -I JOB /bin/sh -c '${command}; ${scored}'`;
  const child = spawn("/bin/sh", ["-c", script], { stdio: ["ignore", "pipe", "inherit"] });
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    for (const _line of text.matchAll(/\n/g)) ends.push(performance.now());
  });
  const code = await new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  if (code !== 0 || ends.length !== jobs) throw new Error(`xargs ended with ${code} after ${ends.length} of ${jobs} jobs`);
  const total = (ends.at(-1) ?? start) - start;
  const alone = (ends.at(-1) ?? start) - (ends.at(-2) ?? start);
  return { seconds: total / 1000, busy: 1 - alone / (slots * total) };
}

async function run(command: string, trials: number): Promise<Kept> {
  const report = await probeSandbox();
  assertUsable(report);
  const folder = await mkdtemp(join(diskFolder(), "bench-slots-"));
  await chmod(folder, 0o755);
  const [pack, scratch] = [join(folder, "pack"), join(folder, "scratch")];
  await mkdir(pack);
  await mkdir(scratch);
  const ledger = openSqliteLedger(join(folder, "run"), { mode: "create", blobFolder: join(folder, "blobs") });
  const executor = createLocalExecutor({ root: join(folder, "executor") });
  try {
    const environment = oneStage(command);
    const record = new ObservedRun(Run.open(ledger, Date.now), environment, trials);
    const prepared = preparedEnvironment(pack, environment);
    const host = {
      prepared,
      executor,
      slots: new Slots(slots),
      sandbox: "bubblewrap",
      giveToSandbox,
      hostEnvironment: {},
      scratch,
    } as const;
    await new Runner(record.run, {
      host,
      redact: (text) => text,
      sessionModels: new Map(),
      sessionAgents: new Map(),
      webSearch: null,
      researchers: new Map([["scripted", scriptedResearcher()]]),
    }).work();
    return record.kept();
  } finally {
    await executor.close();
    ledger.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** A run that notes when its searched trials' stages ran. */
class ObservedRun {
  private readonly searched = new Set<string>();
  private first = Number.POSITIVE_INFINITY;
  private last = 0;
  private busyMs = 0;
  private ended = 0;

  constructor(
    readonly run: Run,
    environment: Environment,
    private readonly trials: number,
  ) {
    run.onEvent((event) => this.note(event));
    const configuration = worldConfiguration({
      environment,
      parallel: slots,
      sandbox: "bubblewrap",
      budget: { trials, costUsd: null, tokens: null, computeMs: null, wallMs: null },
    });
    run.dispatch({ type: "start", configuration, baseline: storeBaseline(run), references: [], queue: [] });
    run.dispatch({ type: "open_span", epoch: 1, previousEndedAt: null, drives: true });
  }

  kept(): Kept {
    if (this.ended !== this.trials) throw new Error(`${this.ended} of ${this.trials} stages ended well`);
    const ms = this.last - this.first;
    return { seconds: ms / 1000, busy: this.busyMs / (slots * ms) };
  }

  private note(event: StoredRunEvent): void {
    if (event.type === "measurement.requested" && event.data.reason === "first") this.searched.add(event.data.measurement);
    if (event.type !== "stage.started" && event.type !== "stage.ended") return;
    if (!this.searched.has(event.data.measurement)) return;
    if (event.type === "stage.started") this.first = Math.min(this.first, event.at);
    else if (event.data.outcome.exitCode === 0) {
      this.last = Math.max(this.last, event.at);
      this.busyMs += event.data.outcome.wallMs;
      this.ended += 1;
    }
  }
}

function oneStage(command: string): Environment {
  const base = worldEnvironment();
  const [stage] = base.stages;
  if (stage === undefined) throw new Error("the scripted environment has no stage");
  const limits = { ...stage.limits, wallMs: 60_000, cpuMs: 60_000 };
  return {
    ...base,
    stages: [{ ...stage, run: `${command}; ${scored}`, limits }],
    metrics: [{ name: "score", direction: "maximize", from: { kind: "stdout", stage: stage.name, pattern: "score (.*)" } }],
    noise: { calibrate: 2, remeasureEvery: 0 },
  };
}

/** Work of a fixed size: counted, not timed. */
function spin(turns: number): string {
  return `i=0; while [ $i -lt ${turns} ]; do i=$((i+1)); done`;
}

/** Turns that take a second when both slots spin. */
async function spinsPerSecond(): Promise<number> {
  const turns = 400_000;
  const { seconds } = await bare(spin(turns), slots);
  return Math.round(turns / seconds);
}
