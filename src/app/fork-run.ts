import { randomBytes } from "node:crypto";
import { renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { copyPrefix } from "../adapters/ledger/copy-prefix.js";
import { syncFolder } from "../adapters/ledger/run-files.js";
import { assertUsable, probeSandbox } from "../adapters/sandbox/probe.js";
import { configurationOf, type RunState } from "../core/harness/state.js";
import { RefusedError } from "../core/protocol/errors.js";
import { parseEvent } from "../core/protocol/events.js";
import type { ForkConfiguration } from "../core/protocol/run.js";
import { endOfTrial } from "../research/replay/end-of-trial.js";
import { Run } from "../research/runner/run.js";
import { refuseMisplacedAgents } from "./agents.js";
import { type BudgetChange, changedBudget } from "./budget-change.js";
import { refuseChangedEnvironment } from "./changed-environment.js";
import { frozenByDigest, type Host } from "./environments.js";
import { gpusFor } from "./gpus.js";
import { reasonAfterLook } from "./heldout-looked.js";
import { type InspectedRun, inspectRun } from "./inspect.js";
import { ledgerAt } from "./ledgers.js";
import { loadModelConfiguration } from "./model-configuration.js";
import { missingKeys } from "./model-researchers.js";
import type { Project } from "./project.js";
import { type ChosenResearchers, chooseResearchers, type ResearcherChoice } from "./researchers.js";
import { copyOrigin, readOrigin } from "./run-origin.js";
import { refuseMisfits, refuseMissingKeys, refuseTaken } from "./run-refusals.js";
import { secretsOf } from "./secrets.js";
import { thisHost } from "./this-host.js";

export interface ForkRequest extends BudgetChange {
  readonly name: string;
  /** The trial whose end is the last that the fork inherits; null: all that the source has recorded by now. */
  readonly at: string | null;
  readonly reason: string;
  /** Null: the source's, as for all that follows. */
  readonly researchers: ResearcherChoice | null;
  readonly seed: number | null;
  readonly parallel: number | null;
  readonly frozen: boolean;
  readonly afterHeldoutLook: string | null;
}

/**
 * Makes a run whose record begins with another's. The source is only read, beside its owner if it has one. Until the fork is
 * whole it lies beside the runs, under a name that no run can have. Nothing is measured yet.
 * @throws RefusedError and the errors of the ledger's port
 */
export async function forkRun(project: Project, host: Host, source: string, request: ForkRequest): Promise<void> {
  refuseTaken(project, request.name);
  const inspected = inspectRun(project, source);
  const temporary = join(project.root, "runs", `.fork-${process.pid}-${randomBytes(6).toString("hex")}`);
  try {
    refuseUncalibrated(inspected.state, source);
    const afterHeldoutLook = reasonAfterLook(inspected.folder, source, request.afterHeldoutLook);
    if (!request.frozen)
      await refuseChangedEnvironment(host, inspected.folder, inspected.state, `trialist fork ${source} --name … --frozen`);
    const configuration = configurationOf(inspected.state);
    await frozenByDigest(host, configuration.environmentDigest);
    if (configuration.sandbox === "bubblewrap") assertUsable(await probeSandbox());
    const own = await ownConfiguration(project, host, inspected, request);
    const until = request.at === null ? inspected.state.version : endOfTrial([...inspected.ledger.read()].map(parseEvent), request.at);
    const { chain, gone } = copyPrefix(inspected.folder, temporary, { blobFolder: project.blobFolder, until });
    const from = { run: source, sequence: until, chain, trial: request.at };
    recordFork(project, temporary, inspected.state, request, { from, own, afterHeldoutLook, gone });
    await copyOrigin(inspected.folder, temporary);
    refuseTaken(project, request.name);
    renameSync(temporary, project.runFolder(request.name));
    syncFolder(join(project.root, "runs"));
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    throw error;
  } finally {
    inspected.close();
  }
}

function refuseUncalibrated({ noise, phase }: RunState, name: string): void {
  if (noise !== null) return;
  throw new RefusedError({
    expected: "a run whose baseline is calibrated",
    found: `${name}, which is ${phase}`,
    todo: "There is nothing to inherit yet: `trialist run` starts a new run.",
  });
}

interface Forked {
  readonly from: { readonly run: string; readonly sequence: number; readonly chain: string; readonly trial: string | null };
  readonly own: Omit<ForkConfiguration, "budget" | "stop">;
  readonly afterHeldoutLook: string | null;
  /** Blobs that were removed after the place that the fork begins at. */
  readonly gone: readonly string[];
}

function recordFork(
  project: Project,
  folder: string,
  source: RunState,
  request: ForkRequest,
  { from, own, afterHeldoutLook, gone }: Forked,
): void {
  const ledger = ledgerAt(project, folder, "own");
  try {
    const run = Run.open(ledger, Date.now);
    const configuration = { ...own, ...changedBudget(run.state, request) };
    run.dispatch({ type: "fork", from, configuration, reason: request.reason, afterHeldoutLook });
    run.dispatch({ type: "prune_blobs", digests: [...gone], reason: `removed in ${from.run}, after the event that this fork began at` });
    // What was found invalid later is invalid here too.
    for (const { id, retracted } of Object.values(source.trials)) {
      if (retracted && run.state.trials[id]?.retracted === false)
        run.dispatch({ type: "retract", trial: id, reason: `retracted in ${from.run}, after the event that this fork began at` });
    }
    run.checkpoint();
  } finally {
    ledger.close();
  }
}

async function ownConfiguration(
  project: Project,
  host: Host,
  { folder, state }: InspectedRun,
  { name, researchers, seed, parallel }: ForkRequest,
): Promise<Forked["own"]> {
  const inherited = configurationOf(state);
  const { models, ...rest } = await loadModelConfiguration(project.folder);
  const chosen: ChosenResearchers =
    researchers === null ? inherited : chooseResearchers(researchers, { ...rest, models }, inherited.environment);
  const environmentFolder = (await readOrigin(folder))?.environmentFolder ?? project.folder;
  if (researchers !== null) {
    refuseMisfits(inherited, chosen);
    refuseMisplacedAgents({ ...inherited, ...chosen }, { project, host, environmentFolder });
  }
  refuseMissingKeys(missingKeys(chosen.researcherSettings, models, secretsOf(host.variables)));
  return {
    run: name,
    researchers: chosen.researchers,
    alternates: chosen.alternates,
    researcherSettings: chosen.researcherSettings,
    callReservations: chosen.callReservations,
    seed: seed ?? inherited.seed,
    parallel: parallel ?? inherited.parallel,
    host: await thisHost(gpusFor(inherited.environment, host, inherited.sandbox)),
  };
}
