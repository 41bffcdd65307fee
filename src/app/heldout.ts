import { cpus, hostname, totalmem, userInfo } from "node:os";
import { type Look, openSealed } from "../adapters/ledger/sealed.js";
import { giveToSandbox } from "../adapters/sandbox/identity.js";
import { isOver } from "../core/harness/due.js";
import { configurationOf, type Trial, trialNamed } from "../core/harness/state.js";
import { readManifest } from "../core/protocol/candidate.js";
import { digestOf } from "../core/protocol/canonical.js";
import { RefusedError } from "../core/protocol/errors.js";
import { type LookHost, lookAtHeldout } from "../research/engine/heldout-look.js";
import { frozenByDigest, type Host, readyEnvironment } from "./environments.js";
import { runKey, withExecutor } from "./executors.js";
import { gpusFor } from "./gpus.js";
import type { InspectedRun } from "./inspect.js";
import { expectedSurroundings } from "./run-surroundings.js";
import { wayToEnd } from "./way-to-end.js";

/** A look's answer: held-out beside in-loop, and how often anybody has looked. */
export interface HeldoutAnswer {
  readonly trial: string;
  readonly heldout: Readonly<Record<string, number>> | null;
  readonly failure: string | null;
  readonly inloop: Readonly<Record<string, number>> | null;
  readonly looks: number;
}

/**
 * Scores a trial's candidate on the held-out split. Counted before it is shown, in a sealed file that no run opens.
 * @throws RefusedError while the run could still learn from the answer, or when there is no held-out stage
 */
export async function heldoutLook(
  host: Host,
  inspected: InspectedRun,
  given: string | null,
  reason: string,
  progress: (line: string) => void,
): Promise<HeldoutAnswer> {
  const { state, name } = inspected;
  if (!isOver(state.phase)) {
    throw new RefusedError({
      expected: "a run that is over",
      found: `${name}, which is ${state.phase}`,
      todo: `A look that a run could still react to is no held-out look. ${wayToEnd(inspected)}`,
    });
  }
  const configuration = configurationOf(state);
  if (!configuration.environment.stages.some((stage) => stage.trust === "held-out")) {
    throw new RefusedError({
      expected: "an environment with a stage of trust held-out",
      found: `${configuration.environment.name}, which has none`,
    });
  }
  const trial = trialNamed(state, given ?? state.leader?.trial ?? "");
  if (trial === null) throw new RefusedError({ expected: "a trial of this run", found: given ?? "a run without a leader" });
  // Made before anything is seen: a search that somebody lets go on meanwhile knows that there was a look.
  const sealed = openSealed(inspected.folder);
  try {
    const result = await measure(host, inspected, trial, progress);
    const failure = result.values === null ? `${result.ended}: ${result.reason ?? "no reason was given"}` : null;
    sealed.append(lookOf(inspected, trial, reason, result, failure));
    return { trial: trial.id, heldout: result.values, failure, inloop: trial.estimate ?? trial.values, looks: sealed.count };
  } finally {
    sealed.close();
  }
}

async function measure(
  host: Host,
  inspected: InspectedRun,
  trial: Trial,
  progress: (line: string) => void,
): Promise<Awaited<ReturnType<typeof lookAtHeldout>>> {
  const configuration = configurationOf(inspected.state);
  const key = `${runKey(inspected.folder)}-look-${process.pid}`;
  return withExecutor(host, key, async ({ executor, scratch }) => {
    const frozen = await frozenByDigest(host, configuration.environmentDigest);
    const expected = await expectedSurroundings(host, inspected.folder, frozen, false);
    const { prepared, data } = await readyEnvironment(host, frozen, executor, configuration.sandbox, progress, expected);
    const changed = await prepared.changed();
    if (changed !== null) throw new RefusedError({ expected: "what the run measured with", found: changed.reason });
    await data.checkHeldout();
    const lookHost: LookHost = {
      prepared,
      executor,
      sandbox: configuration.sandbox,
      giveToSandbox,
      hostEnvironment: host.variables,
      scratch,
      gpus: gpusFor(configuration.environment, host, configuration.sandbox),
      heldoutFolder: data.heldout,
      blob: (digest) => inspected.ledger.blob(digest),
      // What a look prints stays out of the run's own records.
      putBlob: (bytes) => ({ blob: digestOf(bytes), bytes: bytes.byteLength }),
    };
    const manifest = readManifest(inspected.ledger.blob(trial.candidate.blob));
    return await lookAtHeldout(lookHost, `look-${trial.id}`, manifest, configuration.environment.seed);
  });
}

function lookOf(
  inspected: InspectedRun,
  trial: Trial,
  reason: string,
  result: Awaited<ReturnType<typeof lookAtHeldout>>,
  failure: string | null,
): Look {
  const configuration = configurationOf(inspected.state);
  return {
    at: Date.now(),
    subject: trial.candidate.blob,
    trial: trial.id,
    reason,
    operator: userInfo().username,
    environment: configuration.environmentDigest,
    ledger: { head: inspected.ledger.head, chain: inspected.ledger.chain },
    values: result.values === null ? null : { ...result.values },
    failure: failure === null ? null : failure.slice(0, 4000),
    attempts: [
      {
        attempt: 1,
        seed: configuration.environment.seed,
        ended: result.ended,
        values: result.values === null ? null : { ...result.values },
        wallMs: result.wallMs,
        guarantees: result.outcome?.guarantees ?? null,
      },
    ],
    host: {
      name: hostname(),
      platform: process.platform,
      cpu: cpus()[0]?.model ?? "unknown",
      cpus: cpus().length,
      memoryBytes: totalmem(),
    },
  };
}
