import type { CandidateManifest } from "../../core/protocol/candidate.js";
import type { Stage } from "../../core/protocol/environment.js";
import { type EvaluatorVerdict, judgeStage } from "../../core/protocol/status.js";
import { AttemptFolders } from "./attempt-folders.js";
import { conclude, type EndedStage, readEvaluatorFile, selectedOutput } from "./conclude.js";
import { collectCap, type PipelineHost, repeatSeed } from "./pipeline.js";
import { stageExecution } from "./stage-execution.js";

/** What a look needs: no run, no ledger; nothing of it is recorded where a researcher could see it. */
export type LookHost = Pick<
  PipelineHost,
  "prepared" | "executor" | "sandbox" | "giveToSandbox" | "hostEnvironment" | "scratch" | "blob" | "putBlob"
> & { readonly heldoutFolder: string | null };

export interface LookResult {
  /** `measured`, or the status that the candidate ended with, or `evaluator_failure`. */
  readonly ended: string;
  readonly values: Readonly<Record<string, number>> | null;
  readonly records: { readonly blob: string } | null;
  readonly reason: string | null;
  readonly wallMs: number;
  readonly outcome: EndedStage["outcome"] | null;
}

/** A candidate's own stages, what chooses among its outputs on line, and the held-out ones; never the in-loop measurement. */
function belongsToLook(stage: Stage): boolean {
  return stage.trust === "candidate" || stage.trust === "held-out" || stage.purpose === "online";
}

/** Runs a candidate's own stages afresh, then the held-out ones, on one seed. */
export async function lookAtHeldout(host: LookHost, id: string, manifest: CandidateManifest, seed: number): Promise<LookResult> {
  const folders = new AttemptFolders(`${host.scratch}/${id}`, host.giveToSandbox);
  const ended: EndedStage[] = [];
  try {
    for (const stage of host.prepared.environment.stages.filter(belongsToLook)) {
      for (let repeat = 1; repeat <= stage.repeats; repeat++) {
        const failed = await perform(host, folders, id, manifest, seed, stage, repeat, ended);
        if (failed !== null) return failure(ended, failed.ended, failed.reason);
      }
    }
    const result = await conclude(host, folders, ended, "held-out");
    if (result.kind === "measured")
      return {
        ended: "measured",
        values: result.measured.values,
        records: result.records,
        reason: null,
        wallMs: wallOf(ended),
        outcome: ended.at(-1)?.outcome ?? null,
      };
    return failure(ended, result.kind === "ended" ? result.status : result.kind, result.reason);
  } finally {
    await host.executor.forget(`${id}/`);
    await folders.remove();
  }
}

async function perform(
  host: LookHost,
  folders: AttemptFolders,
  id: string,
  manifest: CandidateManifest,
  seed: number,
  stage: Stage,
  repeat: number,
  ended: EndedStage[],
): Promise<{ ended: string; reason: string } | null> {
  const executionId = `${id}/${stage.name}-${repeat}`;
  const { prepared, sandbox, hostEnvironment, heldoutFolder } = host;
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
      collectMaxBytes: collectCap(prepared.environment.gates),
      selected: selectedOutput(ended)?.selected ?? null,
      ...(stage.trust === "held-out" && heldoutFolder !== null ? { heldoutFolder } : {}),
    }),
  );
  const found = await host.executor.wait(executionId);
  if (found.state === "gone") return { ended: "infrastructure_error", reason: found.reason };
  const { stdout, stderr } = await host.executor.output(executionId);
  const last: EndedStage = {
    stage,
    repeat,
    executionId,
    outcome: found.outcome,
    stdout: host.putBlob(stdout.tail),
    stderr: host.putBlob(stderr.tail),
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

function failure(ended: readonly EndedStage[], how: string, reason: string): LookResult {
  return { ended: how, values: null, records: null, reason, wallMs: wallOf(ended), outcome: ended.at(-1)?.outcome ?? null };
}

function wallOf(ended: readonly EndedStage[]): number {
  return ended.reduce((sum, each) => sum + each.outcome.wallMs, 0);
}
