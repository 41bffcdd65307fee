import { HookFiles } from "../adapters/hooks/hook-files.js";
import { assertUsable, probeSandbox } from "../adapters/sandbox/probe.js";
import { candidateDigest } from "../core/protocol/candidate.js";
import { refuseMisplacedAgents } from "./agents.js";
import { freezeFolder, type Host } from "./environments.js";
import { gpusFor } from "./gpus.js";
import { type HookWishes, keepGiven } from "./hooks.js";
import { knownCalibration } from "./known-calibration.js";
import { knownGate } from "./known-gate.js";
import { loadModelConfiguration } from "./model-configuration.js";
import { missingKeys } from "./model-researchers.js";
import type { Project } from "./project.js";
import { ownStartingFiles, type QueuedFiles, recordStart } from "./record-start.js";
import { refuseUnaffordable } from "./refuse-unaffordable.js";
import { chooseResearchers, type ResearcherChoice } from "./researchers.js";
import { resolveConfiguration, type WantedRun } from "./run-configuration.js";
import { refuseMisfits, refuseMissingKeys, refuseTaken } from "./run-refusals.js";
import { secretsOf } from "./secrets.js";
import { type WarmStart, warmStartQueue } from "./warm-start.js";

export interface RunRequest extends ResearcherChoice, WantedRun {
  readonly environmentFolder: string;
  /** Null: the environment's name, with a number where it is taken. */
  readonly name: string | null;
  /** Candidates that are measured before anything that the organization wants; their surface has been checked. */
  readonly queue?: readonly QueuedFiles[];
  /** Candidates of another run that come after those. */
  readonly warmStart?: WarmStart;
  /** Commands of the operator that hear of what happens; kept beside the ledger, never in it. */
  readonly hooks?: HookWishes | null;
  /** A calibration of the same environment on this machine, no older than this, is taken over; left out: the baseline is measured. */
  readonly reuseCalibration?: { readonly maxAgeMs: number } | null;
  /** Hears of what lies in the cache and cannot be used. */
  readonly note?: (line: string) => void;
}

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
  const own = await ownStartingFiles(loaded);
  const destination = { environment: frozen.environment, baseline: candidateDigest(own.baseline.manifest) };
  const warm = request.warmStart == null ? [] : warmStartQueue(project, request.warmStart, destination);
  const reuse = request.reuseCalibration ?? null;
  const { baseline } = destination;
  const calibration =
    reuse === null ? null : await knownCalibration(host, frozen, configuration, { ...reuse, baseline, now: Date.now(), note });
  const starting = { ...own, queue: [...(request.queue ?? []), ...warm], calibration };
  await recordStart(project, configuration, starting, request.environmentFolder);
  if (request.hooks != null) keepGiven(new HookFiles(project.runFolder(name)), request.hooks);
  return name;
}
