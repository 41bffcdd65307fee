import { mkdir, rm } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import type { Progress } from "../adapters/environments/runtime.js";
import { serveOwner } from "../adapters/ledger/owner-socket.js";
import { giveToSandbox } from "../adapters/sandbox/identity.js";
import { assertUsable, probeSandbox } from "../adapters/sandbox/probe.js";
import { isOver, isRunning } from "../core/harness/due.js";
import { configurationOf, type RunState } from "../core/harness/state.js";
import type { Executor } from "../core/ports/executor.js";
import type { ServeTools } from "../core/ports/session-agent.js";
import { RefusedError } from "../core/protocol/errors.js";
import { researchersIn } from "../core/protocol/run.js";
import { Slots } from "../research/engine/slots.js";
import { Run } from "../research/runner/run.js";
import { Runner } from "../research/runner/runner.js";
import { sessionAgentsOf } from "./agents.js";
import { refuseChangedEnvironment } from "./changed-environment.js";
import { frozenByDigest, type Host, readyEnvironment } from "./environments.js";
import { executorAt, runKey } from "./executors.js";
import { gpusFor } from "./gpus.js";
import { HookDelivery } from "./hook-delivery.js";
import type { HookWishes } from "./hooks.js";
import { rememberCalibrations } from "./known-calibration.js";
import { ledgerAt } from "./ledgers.js";
import { loadModelConfiguration, type ModelConfiguration } from "./model-configuration.js";
import { isOptimizer, prepareOptimizers } from "./optimizers.js";
import { longestMessage, perform } from "./perform.js";
import type { Project } from "./project.js";
import { researcherFolder } from "./researcher-folder.js";
import { modelParts, researchersOf, sessionModelsOf } from "./researchers.js";
import { expectedSurroundings } from "./run-surroundings.js";
import { secretsOf } from "./secrets.js";
import { webSearchOf } from "./web-search.js";

/** A run that this process owns and drives. */
export interface OwnedRun {
  readonly run: Run;
  readonly runner: Runner;
  /** Lets go of everything. What still runs goes on by itself and is adopted by the next owner. */
  close(): Promise<void>;
}

/**
 * Takes a run: its lock, its ledger, its environment from the cache, its socket for commands from other processes.
 * @throws RunOwnedError when another process has it
 * @throws RefusedError when it is over, or when its environment's files changed
 */
export async function ownRun(
  project: Project,
  host: Host,
  name: string,
  options: {
    readonly frozen: boolean;
    readonly progress: Progress;
    readonly serveTools?: ServeTools;
    /** Hooks of this command line, beside those given before and those of the project. */
    readonly hooks?: HookWishes | null;
  },
): Promise<OwnedRun> {
  const folder = project.existingRun(name);
  const ledger = ledgerAt(project, folder, "own");
  const executor = executorAt(host, runKey(folder));
  let hooks: HookDelivery | null = null;
  try {
    const run = Run.open(ledger, Date.now);
    refuseUnborn(run.state, name, folder);
    const configured = await loadModelConfiguration(project.folder);
    const heard = { run, project, name, variables: host.variables, configured: configured.hooks, given: options.hooks ?? null };
    hooks = new HookDelivery({ ...heard, note: options.progress });
    // Its owner may have died between its last word and its last tidying up.
    if (isOver(run.state.phase)) await rm(host.cache.folder("scratch", runKey(folder)), { recursive: true, force: true });
    refuseOver(run.state, name);
    if (!options.frozen) await refuseChangedEnvironment(host, folder, run.state, `trialist resume ${name} --frozen`);
    return await drive(folder, host, run, executor, { ...options, frozenOnly: options.frozen, ...configured, hooks });
  } catch (error) {
    await hooks?.close(true);
    await executor.close();
    ledger.close();
    throw error;
  }
}

/** Its process died after it had made the ledger and before it recorded the start. */
function refuseUnborn(state: RunState, name: string, folder: string): void {
  if (state.phase !== "new") return;
  throw new RefusedError({
    expected: "a run that was started",
    found: `${name}, whose ledger is empty: its process ended before the start was recorded`,
    where: folder,
    todo: "Nothing is lost. Remove that folder, then start the run again.",
  });
}

/** @throws RefusedError for a run that nothing can go on with */
export function refuseOver(state: RunState, name: string): void {
  if (!isOver(state.phase)) return;
  throw new RefusedError({
    expected: "a run that is not over",
    found: `${name}, which is ${state.phase}: ${state.reason}`,
    todo: `\`trialist report ${name}\` shows it; \`trialist ${state.phase === "finished" ? `extend ${name} --reason …\` goes on with it` : "run` starts a new one"}.`,
  });
}

async function drive(
  folder: string,
  host: Host,
  run: Run,
  executor: Executor,
  {
    progress,
    models,
    webSearch,
    serveTools,
    hooks,
    frozenOnly,
  }: {
    readonly progress: Progress;
    readonly frozenOnly: boolean;
    readonly serveTools?: ServeTools;
    readonly hooks: HookDelivery;
  } & Pick<ModelConfiguration, "models" | "webSearch">,
): Promise<OwnedRun> {
  const configuration = configurationOf(run.state);
  if (configuration.sandbox === "bubblewrap") assertUsable(await probeSandbox());
  const gpus = gpusFor(configuration.environment, host, configuration.sandbox);
  const frozen = await frozenByDigest(host, configuration.environmentDigest);
  const expected = await expectedSurroundings(host, folder, frozen, frozenOnly);
  const { prepared } = await readyEnvironment(host, frozen, executor, configuration.sandbox, progress, expected);
  const scratch = host.cache.folder("scratch", runKey(folder));
  await mkdir(scratch, { recursive: true, mode: 0o755 });
  const secrets = secretsOf(host.variables);
  const slots = new Slots(Math.max(cpus().length, configuration.parallel), gpus);
  await holdGpusInUse(slots, executor);
  const parts = {
    executor,
    prepared,
    configuration,
    models,
    secrets,
    optimizers: researchersIn(configuration).some(isOptimizer) ? await prepareOptimizers(host, scratch, progress) : null,
    ...researcherFolder(prepared, join(scratch, "researcher")),
  };
  const runner = new Runner(run, {
    host: { prepared, executor, slots, sandbox: configuration.sandbox, giveToSandbox, hostEnvironment: host.variables, scratch },
    redact: secrets.redact,
    webSearch: webSearchOf(webSearch),
    researchers: researchersOf(parts),
    sessionModels: sessionModelsOf(parts),
    sessionAgents: sessionAgentsOf({ ...parts, ...modelParts(parts), scratch, serveTools: serveTools ?? null }),
  });
  const remembered = rememberCalibrations(host, frozen, run, progress);
  const previousEndedAt = run.ledger.lastHeartbeat()?.at ?? null;
  run.dispatch({ type: "open_span", epoch: run.state.epoch + 1, previousEndedAt, drives: true });
  const server = await serveOwner(folder, (asked) => perform(run, asked, (command) => runner.command(command)), {
    maxLength: longestMessage(configuration.environment.surface),
  });
  return { run, runner, close: () => close(run, executor, server, scratch, hooks, remembered) };
}

/** What an owner before this one started may still run; its GPUs are nobody else's until it ends. */
async function holdGpusInUse(slots: Slots, executor: Executor): Promise<void> {
  for (const { id, gpus } of await executor.gpusInUse()) {
    const letGo = slots.hold(id, gpus);
    executor.wait(id).then(letGo, () => undefined);
  }
}

async function close(
  run: Run,
  executor: Executor,
  server: { close(): Promise<void> | void },
  scratch: string,
  hooks: HookDelivery,
  remembered: () => Promise<void>,
): Promise<void> {
  await server.close();
  await remembered();
  await executor.close();
  // Who leaves in the middle of the work does not wait: the next owner delivers the rest.
  await hooks.close(!isRunning(run.state));
  if (isOver(run.state.phase)) await rm(scratch, { recursive: true, force: true });
  run.ledger.close();
}
