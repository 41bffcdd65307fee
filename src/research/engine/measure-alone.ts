import type { GpuPool } from "../../core/ports/gpus.js";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import type { Stage } from "../../core/protocol/environment.js";
import { type EvaluatorVerdict, judgeStage } from "../../core/protocol/status.js";
import { AttemptFolders } from "./attempt-folders.js";
import { conclude, type EndedStage, readEvaluatorFile, selectedOutput } from "./conclude.js";
import { collectCap, type PipelineHost, repeatSeed } from "./pipeline.js";
import { stageExecution } from "./stage-execution.js";

/** What a measurement without a run needs: no ledger, no slots; nothing of it is recorded where a researcher could see it. */
export type AloneHost = Pick<
  PipelineHost,
  "prepared" | "executor" | "sandbox" | "giveToSandbox" | "hostEnvironment" | "scratch" | "blob" | "putBlob"
> & { readonly gpus: GpuPool };

/** Which stages are run, and what the last of them is for. */
export interface AloneWish {
  readonly belongs: (stage: Stage) => boolean;
  readonly purpose: "in-loop" | "held-out";
  /** Folder of the held-out split, for a look alone. */
  readonly heldoutFolder: string | null;
  /** Hears of each execution while it runs. */
  readonly onStart?: (executionId: string, stage: Stage) => void;
  /** Asked before each stage: true ends the measurement there. */
  readonly halted?: () => boolean;
}

export interface AloneResult {
  /** `measured`, or the status that the candidate ended with, or `evaluator_failure`. */
  readonly ended: string;
  readonly values: Readonly<Record<string, number>> | null;
  readonly records: { readonly blob: string } | null;
  readonly reason: string | null;
  readonly wallMs: number;
  readonly outcome: EndedStage["outcome"] | null;
  /** Every execution that came to an end, in order. */
  readonly stages: readonly EndedStage[];
}

/** Takes a candidate through stages once, on one seed, without a run. */
export async function measureAlone(
  host: AloneHost,
  id: string,
  manifest: CandidateManifest,
  seed: number,
  wish: AloneWish,
): Promise<AloneResult> {
  const folders = new AttemptFolders(`${host.scratch}/${id}`, host.giveToSandbox);
  const ended: EndedStage[] = [];
  try {
    for (const stage of host.prepared.environment.stages.filter(wish.belongs)) {
      for (let repeat = 1; repeat <= stage.repeats; repeat++) {
        if (wish.halted?.() === true) return failure(ended, "halted", "it was stopped");
        const failed = await perform(host, wish, folders, id, manifest, seed, stage, repeat, ended);
        if (failed !== null) return failure(ended, failed.ended, failed.reason);
      }
    }
    const result = await conclude(host, folders, ended, wish.purpose);
    if (result.kind === "measured")
      return {
        ended: "measured",
        values: result.measured.values,
        records: result.records,
        reason: null,
        wallMs: wallOf(ended),
        outcome: ended.at(-1)?.outcome ?? null,
        stages: ended,
      };
    return failure(ended, result.kind === "ended" ? result.status : result.kind, result.reason);
  } finally {
    await host.executor.forget(`${id}/`);
    await folders.remove();
  }
}

async function perform(
  host: AloneHost,
  { heldoutFolder, onStart }: AloneWish,
  folders: AttemptFolders,
  id: string,
  manifest: CandidateManifest,
  seed: number,
  stage: Stage,
  repeat: number,
  ended: EndedStage[],
): Promise<{ ended: string; reason: string } | null> {
  const executionId = `${id}/${stage.name}-${repeat}`;
  const { prepared, sandbox, hostEnvironment } = host;
  await host.executor.start(
    await stageExecution({
      id: executionId,
      stage,
      repeat,
      seed: repeatSeed(seed, repeat),
      sandbox,
      prepared,
      folders,
      manifest,
      content: host.blob,
      hostEnvironment,
      // One stage after the other: there is nobody to share with.
      gpus: stage.limits.gpus === undefined ? null : host.gpus.assign(host.gpus.numbers.slice(0, stage.limits.gpus)),
      collectMaxBytes: collectCap(prepared.environment.gates),
      selected: selectedOutput(ended)?.selected ?? null,
      ...(stage.trust === "held-out" && heldoutFolder !== null ? { heldoutFolder } : {}),
    }),
  );
  onStart?.(executionId, stage);
  const found = await host.executor.wait(executionId);
  if (found.state === "gone") return { ended: "infrastructure_error", reason: found.reason };
  const { stdout, stderr } = await host.executor.output(executionId);
  const last: EndedStage = {
    stage,
    repeat,
    executionId,
    outcome: found.outcome,
    stdout: host.putBlob(Buffer.concat([stdout.head, stdout.tail])),
    stderr: host.putBlob(Buffer.concat([stderr.head, stderr.tail])),
  };
  ended.push(last);
  const verdict: EvaluatorVerdict | null = stage.trust === "candidate" ? null : readEvaluatorFile(host, folders, stage, last);
  const judgement = judgeStage(stage, found.outcome, verdict);
  if (judgement.kind === "continue") return null;
  const said = Buffer.concat([stderr.head, stderr.tail]).toString("utf8").slice(-1000);
  return judgement.kind === "ended"
    ? { ended: judgement.status, reason: judgement.reason }
    : { ended: "evaluator_failure", reason: `${judgement.reason}. ${said}` };
}

function failure(ended: readonly EndedStage[], how: string, reason: string): AloneResult {
  return { ended: how, values: null, records: null, reason, wallMs: wallOf(ended), outcome: ended.at(-1)?.outcome ?? null, stages: ended };
}

function wallOf(ended: readonly EndedStage[]): number {
  return ended.reduce((sum, each) => sum + each.outcome.wallMs, 0);
}
