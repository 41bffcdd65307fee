import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqliteLedger } from "../../src/adapters/ledger/sqlite-ledger.js";
import { createRun, type RunRequest } from "../../src/app/create-run.js";
import { type Host, openHost } from "../../src/app/environments.js";
import { type ExtendRequest, extendRun } from "../../src/app/extend-run.js";
import { type ForkRequest, forkRun } from "../../src/app/fork-run.js";
import { inspectRun } from "../../src/app/inspect.js";
import { type OwnedRun, ownRun } from "../../src/app/own-run.js";
import { Project } from "../../src/app/project.js";
import { verifyRun } from "../../src/app/verify.js";
import type { Ledger } from "../../src/core/ports/ledger.js";
import { LedgerFullError } from "../../src/core/ports/ledger-errors.js";
import { RefusedError } from "../../src/core/protocol/errors.js";
import { parseEvent, type StoredRunEvent } from "../../src/core/protocol/events.js";
import { project } from "../../src/core/protocol/projection.js";

/** One thing that a driver process does. Told as JSON on the command line, one after the other. */
export type Step =
  | { readonly do: "create"; readonly name: string; readonly request: Partial<RunRequest>; readonly death?: Death }
  | {
      readonly do: "work";
      readonly name: string;
      /** That the run is over already is no failure. */
      readonly mayBeOver?: boolean;
      readonly retractions?: readonly Retraction[];
      readonly frozen?: boolean;
      readonly death?: Death;
    }
  | { readonly do: "extend"; readonly name: string; readonly request: Partial<ExtendRequest> }
  /** `name`: the source's. */
  | { readonly do: "fork"; readonly name: string; readonly request: Partial<ForkRequest>; readonly death?: Death }
  | { readonly do: "report"; readonly name: string };

/** When this process ends itself by SIGKILL: beside the n-th append of the step, counted with those of a `create` before it. */
export interface Death {
  readonly side: "before" | "after";
  readonly append: number;
}

/** The operator takes a trial back as soon as a call is requested: between two events, however often the run is resumed. */
export interface Retraction {
  readonly trial: string;
  readonly whenRequested: string;
}

export interface Job {
  readonly project: string;
  readonly environment: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
  /** Where devices are looked for, instead of on this machine. */
  readonly deviceRoot?: string;
  /** Milliseconds that the clock goes back at every look, from the n-th look on. */
  readonly clock?: { readonly fromLook: number; readonly backMs: number };
  /** Of this process the n-th append finds a full disk, and so does everything after the one before. */
  readonly fullFrom?: number;
  /** The disk is full once an attempt of this measurement was recorded as started. */
  readonly fullWhile?: string;
}

/** What a `report` prints. */
export interface Report {
  readonly name: string;
  readonly phase: string;
  readonly reason: string;
  readonly activeMs: number;
  /** Appends of this process since it made a run. */
  readonly appends: number;
  readonly verified: { readonly ok: boolean; readonly problem: string | null };
  readonly events: readonly StoredRunEvent[];
  readonly projection: unknown;
}

const job = JSON.parse(process.argv[2] ?? "") as Job;
let appends = 0;
let death: Death | null = null;
let full = false;

/** Every ledger of this process dies at the wanted append. The port is wrapped; nothing in trialist knows. */
function wrapAppends(): void {
  const folder = mkdtempSync(join(tmpdir(), "trialist-wrap-"));
  const ledger = openSqliteLedger(join(folder, "run"), { mode: "create", blobFolder: join(folder, "blobs") });
  const shape = Object.getPrototypeOf(ledger) as { append: Ledger["append"]; heartbeat: Ledger["heartbeat"] };
  ledger.close();
  rmSync(folder, { recursive: true });
  const beat = shape.heartbeat;
  shape.heartbeat = function (this: Ledger, at) {
    if (full) throw new LedgerFullError("a scripted disk");
    beat.call(this, at);
  };
  const original = shape.append;
  shape.append = function (this: Ledger, ...given) {
    appends += 1;
    if (full) throw new LedgerFullError("a scripted disk");
    if (death?.side === "before" && death.append === appends) die();
    const stored = original.apply(this, given);
    if (death?.side === "after" && death.append === appends) die();
    full ||= job.fullFrom !== undefined && appends >= job.fullFrom - 1;
    full ||= given[2].some(
      (event) => event.type === "attempt.started" && (event.data as { measurement: string }).measurement === job.fullWhile,
    );
    return stored;
  };
}

function die(): void {
  process.kill(process.pid, "SIGKILL");
}

function setClock({ fromLook, backMs }: NonNullable<Job["clock"]>): void {
  const real = Date.now;
  let looks = 0;
  Date.now = () => real() - Math.max(0, ++looks - fromLook) * backMs;
}

const defaults: Omit<RunRequest, "environmentFolder" | "name"> = {
  organization: { name: "tree", configuration: {} },
  researcher: "command:sh answer.sh",
  budget: { trials: 4, costUsd: null, tokens: null, computeMs: null, wallMs: null },
  promotion: {},
  seed: 1,
  parallel: 1,
  sandbox: "bubblewrap",
};

const unchanged: ForkRequest = {
  name: "fork",
  at: null,
  reason: "the test forks",
  caps: {},
  stop: {},
  researchers: null,
  seed: null,
  parallel: null,
  frozen: false,
  afterHeldoutLook: null,
};

async function work(place: Project, host: Host, step: Extract<Step, { do: "work" }>): Promise<void> {
  const owned = await ownRun(place, host, step.name, { frozen: step.frozen ?? true, progress: () => undefined });
  owned.runner.command({ type: "resume", reason: "the test goes on" });
  for (const retraction of step.retractions ?? []) watch(owned, retraction);
  try {
    await owned.runner.work();
  } finally {
    await owned.close();
  }
}

function watch(owned: OwnedRun, { trial, whenRequested }: Retraction): void {
  const { run, runner } = owned;
  const act = (): void => {
    if (run.state.trials[trial]?.retracted === false) runner.command({ type: "retract", trial, reason: "the test found it invalid" });
  };
  // A dispatch inside a dispatch would see half a fold: it comes right after.
  run.onEvent((event) => {
    if (event.type === "call.requested" && event.data.call === whenRequested) queueMicrotask(act);
  });
  if (run.state.counters.call >= Number(whenRequested.slice(1))) act();
}

async function report(place: Project, name: string): Promise<Report> {
  const inspected = inspectRun(place, name);
  try {
    const events = [...inspected.ledger.read()].map(parseEvent);
    const { ok, problem } = await verifyRun(place, name);
    const { phase, reason, activeMs } = inspected.state;
    return { name, phase, reason, activeMs, appends, verified: { ok, problem }, events, projection: project(events) };
  } finally {
    inspected.close();
  }
}

async function main(): Promise<void> {
  wrapAppends();
  if (job.clock !== undefined) setClock(job.clock);
  const place = new Project(job.project);
  const opened = await openHost(job.variables);
  const host = job.deviceRoot === undefined ? opened : { ...opened, deviceRoot: job.deviceRoot };
  for (const step of job.steps) {
    if (step.do === "create") {
      appends = 0;
      death = step.death ?? null;
      await createRun(place, host, { ...defaults, environmentFolder: job.environment, name: step.name, ...step.request });
    }
    if (step.do === "work") {
      if (step.death !== undefined) {
        appends = 0;
        death = step.death;
      }
      await work(place, host, step).catch((error: unknown) => {
        if (step.mayBeOver !== true || !(error instanceof RefusedError) || !error.facts.found.includes("which is finished")) throw error;
      });
    }
    if (step.do === "extend") {
      const request: ExtendRequest = { caps: {}, stop: {}, reason: "the test wants more", frozen: false, afterHeldoutLook: null };
      await extendRun(place, host, step.name, { ...request, ...step.request });
    }
    if (step.do === "fork") {
      appends = 0;
      death = step.death ?? null;
      await forkRun(place, host, step.name, { ...unchanged, ...step.request });
    }
    if (step.do === "report") process.stdout.write(`${JSON.stringify(await report(place, step.name))}\n`);
  }
}

// A failure that arrives here was thrown to whoever waits for the run; anything else ends the process as a defect.
await main().catch((error: Error) => {
  process.stderr.write(`thrown: ${error.name}: ${error.message}\n`);
  process.exitCode = 3;
});
