import { type FrozenEnvironment, readCandidate } from "../adapters/environments/freeze.js";
import type { LoadedEnvironment } from "../adapters/environments/load.js";
import { configurationOf, type RunState } from "../core/harness/state.js";
import { candidateDigest } from "../core/protocol/candidate.js";
import { canonicalJson, digestOfValue } from "../core/protocol/canonical.js";
import type { Promotion } from "../core/protocol/environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import { freezeFolder, type Host } from "./environments.js";
import { gpusFor } from "./gpus.js";
import { inspectRun } from "./inspect.js";
import { knownCalibration } from "./known-calibration.js";
import { createListRun } from "./list-run.js";
import { hostFingerprint, type MeasuredSubject, neighboursThatCount } from "./measurement-key.js";
import type { Project } from "./project.js";
import { ownStartingFiles } from "./record-start.js";
import { thisHost } from "./this-host.js";

/** Copies of an environment's baseline as trials, under the rule in force. */
export interface GateRequest extends Pick<RunConfiguration, "seed" | "parallel" | "sandbox"> {
  readonly environmentFolder: string;
  /** Of the run; null: a name that the same request finds again. */
  readonly name: string | null;
  readonly copies: number;
  readonly promotion: Partial<Promotion>;
}

export interface PlannedGate {
  readonly run: string;
  /** `new`: `create` makes it. Else it is gone on with, or over. */
  readonly phase: RunState["phase"];
  readonly frozen: FrozenEnvironment;
  readonly promotion: Promotion;
  /** Passes of the pipeline from the beginning to the end: if no copy is confirmed, and if all are. */
  readonly measurements: { readonly least: number; readonly most: number };
  /** What one takes, as an earlier calibration here had it; null: not known yet. */
  readonly measurementMs: number | null;
  create(): Promise<void>;
}

/** What a request comes to; nothing is made yet. @throws RefusedError when a run of that name measures something else */
export async function planGate(project: Project, host: Host, request: GateRequest): Promise<PlannedGate> {
  if (request.copies < 1) throw new RefusedError({ expected: "at least one copy", found: String(request.copies) });
  const { loaded, frozen } = await freezeFolder(host, request.environmentFolder);
  const subject = await subjectOf(host, frozen, request);
  const promotion = { ...frozen.environment.promotion, ...request.promotion };
  const wanted = { frozen, promotion, request, subject };
  const run = request.name ?? nameOf(wanted);
  return {
    run,
    phase: phaseOf(project, run, wanted),
    frozen,
    promotion,
    measurements: measurementsOf(frozen, promotion, request.copies),
    measurementMs: await measurementMs(host, loaded, frozen, subject),
    create: () => create(project, host, { ...wanted, loaded, run }),
  };
}

interface Wanted {
  readonly frozen: FrozenEnvironment;
  readonly promotion: Promotion;
  readonly request: GateRequest;
  readonly subject: MeasuredSubject;
}

function nameOf({ frozen, promotion, request: { copies, seed, sandbox }, subject }: Wanted): string {
  const parallel = neighboursThatCount(subject) ?? 1;
  const alone = { environment: frozen.digest, promotion, copies, seed, sandbox };
  const digest = digestOfValue(parallel === 1 ? alone : { ...alone, parallel });
  return `calibrate-${frozen.environment.name.slice(0, 24)}-${digest.slice(0, 8)}`;
}

async function subjectOf(host: Host, { environment, digest }: FrozenEnvironment, request: GateRequest): Promise<MeasuredSubject> {
  const { sandbox, parallel } = request;
  return { environment, environmentDigest: digest, host: await thisHost(gpusFor(environment, host, sandbox)), sandbox, parallel };
}

function phaseOf(project: Project, run: string, wanted: Wanted): RunState["phase"] {
  project.runFolder(run);
  if (!project.runNames().includes(run)) return "new";
  const { state, close } = inspectRun(project, run);
  close();
  if (state.phase !== "new") refuseOther(state, run, wanted);
  // An empty ledger is refused by whoever takes the run, with what to do about it.
  return state.phase === "new" ? "calibrating" : state.phase;
}

function refuseOther(state: RunState, run: string, { promotion, request, subject }: Wanted): void {
  const recorded = configurationOf(state);
  const of = (measured: MeasuredSubject, rule: Promotion, ...parts: unknown[]): string =>
    canonicalJson([
      measured.environmentDigest,
      measured.sandbox,
      neighboursThatCount(measured),
      hostFingerprint(measured.host),
      rule,
      parts,
    ]);
  const found = of(recorded, recorded.promotion, recorded.organization.name, recorded.budget.trials, recorded.seed);
  if (found === of(subject, promotion, "list", request.copies, request.seed)) return;
  throw new RefusedError({
    expected:
      "a name that no run has, or a run of as many copies of this environment's baseline, on this machine under the same rule, seed and sandbox (and --parallel, where a metric is a time)",
    found: `${run}, which measures something else`,
    todo: "Choose another --name.",
  });
}

function measurementsOf({ environment }: FrozenEnvironment, promotion: Promotion, copies: number): PlannedGate["measurements"] {
  const { calibrate, remeasureEvery } = environment.noise;
  const remeasured = remeasureEvery === 0 ? 0 : Math.floor(copies / remeasureEvery);
  const least = calibrate + environment.references.length + copies + remeasured;
  return { least, most: least + (promotion.rule === "confirmed" ? copies * 2 * promotion.confirmations : 0) };
}

async function measurementMs(
  host: Host,
  loaded: LoadedEnvironment,
  frozen: FrozenEnvironment,
  subject: MeasuredSubject,
): Promise<number | null> {
  const baseline = candidateDigest((await readCandidate(loaded.folder, loaded.baseline)).manifest);
  const anyAge = { baseline, maxAgeMs: Number.POSITIVE_INFINITY, now: Date.now(), note: () => undefined };
  const known = await knownCalibration(host, frozen, subject, anyAge);
  if (known === null) return null;
  const total = known.results.flatMap(({ wallMs }) => Object.values(wallMs)).reduce((sum, ms) => sum + ms, 0);
  return total / known.results.length;
}

async function create(
  project: Project,
  host: Host,
  { loaded, frozen, promotion, run, request }: Wanted & { readonly loaded: LoadedEnvironment; readonly run: string },
): Promise<void> {
  const own = await ownStartingFiles(loaded);
  const queue = Array.from({ length: request.copies }, (_, index) => ({
    base: "t0",
    hypothesis: `copy ${index + 1} of the baseline: no better by construction`,
    submitter: "calibrate",
    move: { copy: index + 1 },
    files: own.baseline,
  }));
  const { environmentFolder, seed, parallel, sandbox } = request;
  const starting = { ...own, queue };
  await createListRun(project, host, { name: run, frozen, environmentFolder, starting, promotion, seed, parallel, sandbox });
}
