import { readFile, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { type CandidateFiles, type FrozenEnvironment, readCandidate } from "../adapters/environments/freeze.js";
import { HookFiles } from "../adapters/hooks/hook-files.js";
import { assertUsable, probeSandbox } from "../adapters/sandbox/probe.js";
import { organizationNamed } from "../core/organizations/registry.js";
import type { GpuPool } from "../core/ports/gpus.js";
import type { BudgetLimits } from "../core/protocol/budget.js";
import type { ReusedCalibration } from "../core/protocol/calibration.js";
import { candidateDigest } from "../core/protocol/candidate.js";
import { canonicalJson } from "../core/protocol/canonical.js";
import type { QueuedCandidate } from "../core/protocol/commands.js";
import type { Promotion } from "../core/protocol/environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import { externalResearcher, type ManifestReference } from "../core/protocol/ids.js";
import { type RunConfiguration, runConfiguration } from "../core/protocol/run.js";
import { Run } from "../research/runner/run.js";
import { refuseMisplacedAgents } from "./agents.js";
import { freezeFolder, type Host } from "./environments.js";
import { gpusFor } from "./gpus.js";
import { type HookWishes, keepGiven } from "./hooks.js";
import { type KnownCalibration, knownCalibration } from "./known-calibration.js";
import { knownGate } from "./known-gate.js";
import { ledgerAt } from "./ledgers.js";
import { loadModelConfiguration } from "./model-configuration.js";
import { missingKeys } from "./model-researchers.js";
import type { Project } from "./project.js";
import { refuseUnaffordable } from "./refuse-unaffordable.js";
import { type ChosenResearchers, chooseResearchers, commandWallMs, type ResearcherChoice } from "./researchers.js";
import { secretsOf } from "./secrets.js";
import { ownVersion } from "./version.js";
import { type WarmStart, warmStartQueue } from "./warm-start.js";

export interface RunRequest extends ResearcherChoice {
  readonly environmentFolder: string;
  /** Null: the environment's name, with a number where it is taken. */
  readonly name: string | null;
  readonly organization: { readonly name: string; readonly configuration: Readonly<Record<string, unknown>> };
  readonly budget: BudgetLimits;
  readonly promotion: Partial<Promotion>;
  /** When to end before the budget does. */
  readonly stop?: Partial<RunConfiguration["stop"]>;
  /** Candidates that are measured before anything that the organization wants; their surface has been checked. */
  readonly queue?: readonly QueuedFiles[];
  /** Candidates of another run that come after those. */
  readonly warmStart?: WarmStart;
  readonly seed: number;
  readonly parallel: number;
  readonly sandbox: "bubblewrap" | "none";
  /** Commands of the operator that hear of what happens; kept beside the ledger, never in it. */
  readonly hooks?: HookWishes | null;
  /** A calibration of the same environment on this machine, no older than this, is taken over; left out: the baseline is measured. */
  readonly reuseCalibration?: { readonly maxAgeMs: number } | null;
  /** Hears of what lies in the cache and cannot be used. */
  readonly note?: (line: string) => void;
}

/** What lies beside the ledger: where the environment was when the run started. Information, never trusted. */
export interface RunOrigin {
  readonly environmentFolder: string;
}

export const originFile = "origin.json";

/** Makes a run: freezes its environment, resolves its configuration, and records the start. Nothing is measured yet. */
export async function createRun(project: Project, host: Host, request: RunRequest): Promise<string> {
  if (request.sandbox === "bubblewrap") assertUsable(await probeSandbox());
  if (request.name !== null) refuseTaken(project, request.name);
  const { loaded, frozen } = await freezeFolder(host, request.environmentFolder);
  const gpus = gpusFor(frozen.environment, host, request.sandbox);
  const models = await loadModelConfiguration(project.folder);
  const chosen = chooseResearchers(request, models, frozen.environment);
  refuseMisfits(request, chosen);
  refuseUnaffordable({ ...request, ...chosen, environment: frozen.environment });
  refuseMissingKeys(missingKeys(chosen.researcherSettings, models.models, secretsOf(host.variables)));
  refuseMisplacedAgents({ ...request, ...chosen }, { project, host, environmentFolder: request.environmentFolder });
  project.make();
  const name = request.name ?? project.freeName(frozen.environment.name);
  const resolved = await resolveConfiguration(name, frozen, request, chosen, gpus);
  const note = request.note ?? (() => undefined);
  const configuration = { ...resolved, gate: await knownGate(host, frozen, resolved, note) };
  const references = await Promise.all(
    loaded.references.map(async ({ name: reference, files }) => ({ name: reference, files: await readCandidate(loaded.folder, files) })),
  );
  const baseline = await readCandidate(loaded.folder, loaded.baseline);
  const destination = { environment: frozen.environment, baseline: candidateDigest(baseline.manifest) };
  const warm = request.warmStart == null ? [] : warmStartQueue(project, request.warmStart, destination);
  const reuse = request.reuseCalibration ?? null;
  const calibration = reuse === null ? null : await knownCalibration(host, frozen, configuration, { ...reuse, now: Date.now(), note });
  const starting = { baseline, references, queue: [...(request.queue ?? []), ...warm], calibration };
  await recordStart(project, configuration, starting, request.environmentFolder);
  if (request.hooks != null) keepGiven(new HookFiles(project.runFolder(name)), request.hooks);
  return name;
}

/** A candidate that is measured before anything else, with its files. */
export interface QueuedFiles extends Omit<QueuedCandidate, "candidate"> {
  readonly files: CandidateFiles;
}

export interface StartingFiles {
  readonly baseline: CandidateFiles;
  readonly references: readonly { readonly name: string; readonly files: CandidateFiles }[];
  readonly queue: readonly QueuedFiles[];
  /** Null or left out: the baseline is measured. */
  readonly calibration?: KnownCalibration | null;
}

/** Makes the ledger of a run that has its configuration. */
export async function recordStart(
  project: Project,
  configuration: RunConfiguration,
  { baseline, references, queue, calibration = null }: StartingFiles,
  environmentFolder: string | null,
): Promise<void> {
  const folder = project.runFolder(configuration.run);
  const ledger = ledgerAt(project, folder, "create");
  try {
    if (environmentFolder !== null)
      await writeFile(join(folder, originFile), canonicalJson({ environmentFolder: resolve(environmentFolder) } satisfies RunOrigin));
    const run = Run.open(ledger, Date.now);
    run.dispatch({
      type: "start",
      configuration,
      baseline: storeCandidate(run, baseline),
      references: references.map(({ name, files }) => ({ name, candidate: storeCandidate(run, files) })),
      queue: queue.map(({ files, ...candidate }) => ({ ...candidate, candidate: storeCandidate(run, files) })),
      calibration: calibration === null ? null : storeCalibration(run, calibration),
    });
  } finally {
    ledger.close();
  }
}

function storeCalibration(run: Run, { records, ...calibration }: KnownCalibration): ReusedCalibration {
  for (const bytes of records.values()) run.putBlob(bytes);
  return calibration;
}

/** Who works in long sessions, and who answers role calls, is known before anything is measured. */
export function refuseMisfits({ organization }: Pick<RunRequest, "organization">, { researchers, alternates }: ChosenResearchers): void {
  const { asks, configure, isServed: servedUnder } = organizationNamed(organization.name);
  const isSessions = asks === "sessions";
  if (isSessions && alternates.length > 0)
    throw new RefusedError({
      expected: "one researcher for long sessions",
      found: `${alternates.length + 1} that take turns`,
      where: "--turns",
      todo: "Turns are taken call by call: leave --turns or --organization away.",
    });
  const isServed = servedUnder(configure(organization.configuration));
  const external = Object.values(researchers).includes(externalResearcher);
  if (external && !isServed)
    throw new RefusedError({
      expected: "a researcher of this machine",
      found: externalResearcher,
      todo: "`trialist mcp ENVIRONMENT` makes a run whose trials come from outside.",
    });
  const generalist = researchers["generalist"] ?? researchers["*"] ?? "";
  if (!isSessions || isServed || /^(model|agent):/.test(generalist)) return;
  throw new RefusedError({
    expected: "a researcher that works in long sessions: a language model or a coding agent",
    found: JSON.stringify(generalist),
    todo: "Name one, such as --researcher anthropic:MODEL, or leave --organization away.",
  });
}

export function refuseMissingKeys(variables: readonly string[]): void {
  if (variables.length === 0) return;
  throw new RefusedError({
    expected: "the keys of the models that this run asks",
    found: `no ${variables.join(", no ")} in the environment`,
    todo: "Set it, or name a key_command in trialist.config.yaml.",
  });
}

export function refuseTaken(project: Project, name: string): void {
  project.runFolder(name);
  if (!project.runNames().includes(name)) return;
  throw new RefusedError({
    expected: "a name that no run of this project has",
    found: JSON.stringify(name),
    todo: `\`trialist resume ${name}\` goes on with that run; choose another --name for a new one.`,
  });
}

function storeCandidate(run: Run, candidate: CandidateFiles): ManifestReference {
  for (const bytes of candidate.contents.values()) run.putBlob(bytes);
  return { ...run.putBlob(new TextEncoder().encode(canonicalJson(candidate.manifest))), manifest: true };
}

/** Bounds of every run that nobody has to choose. */
export const callLimits: RunConfiguration["limits"] = {
  callRounds: 3,
  refusedCalls: 5,
  attempts: 3,
  sessionTurns: 60,
  callWallMs: commandWallMs,
};

async function resolveConfiguration(
  run: string,
  frozen: FrozenEnvironment,
  request: RunRequest,
  chosen: ChosenResearchers,
  gpus: GpuPool,
): Promise<RunConfiguration> {
  const { environment } = frozen;
  const given: RunConfiguration = {
    run,
    environment,
    environmentDigest: frozen.digest,
    organization: {
      name: request.organization.name,
      configuration: organizationNamed(request.organization.name).configure(request.organization.configuration) as Record<string, unknown>,
    },
    ...chosen,
    budget: request.budget,
    promotion: { ...environment.promotion, ...request.promotion },
    stop: { target: null, patience: null, saturation: null, ...request.stop },
    seed: request.seed,
    parallel: request.parallel,
    sandbox: request.sandbox,
    limits: callLimits,
    host: await thisHost(gpus),
    gate: null,
  };
  return runConfiguration.parse(given);
}

/** The machine that a run is started on, as it is recorded. `gpus`: those that its stages may have. */
export async function thisHost(gpus: GpuPool): Promise<RunConfiguration["host"]> {
  return {
    platform: process.platform,
    cpus: cpus().length,
    cpuModel: cpus()[0]?.model ?? "unknown",
    memoryBytes: totalmem(),
    ...(gpus.models.length === 0 ? {} : { gpus: [...gpus.models] }),
    versions: { trialist: await ownVersion(), node: process.versions.node },
  };
}

/** Where the environment of a run was when it started; null when nobody knows. */
export async function readOrigin(runFolder: string): Promise<RunOrigin | null> {
  const text = await readFile(join(runFolder, originFile), "utf8").catch(() => null);
  return text === null ? null : (JSON.parse(text) as RunOrigin);
}
