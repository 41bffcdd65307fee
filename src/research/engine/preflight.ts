import { join } from "node:path";
import type { CandidateManifest } from "../../core/protocol/candidate.js";
import type { Stage } from "../../core/protocol/environment.js";
import { judgeStage } from "../../core/protocol/status.js";
import { AttemptFolders, CandidateLayoutError } from "./attempt-folders.js";
import { collectCap, type PipelineHost } from "./pipeline.js";
import { stageExecution } from "./stage-execution.js";

/** What a preflight needs: no measurement and no ledger; what it used is booked by whoever asked for it. */
export type PreflightHost = Pick<
  PipelineHost,
  "prepared" | "executor" | "slots" | "sandbox" | "giveToSandbox" | "hostEnvironment" | "scratch" | "blob"
>;

export interface PreflightResult {
  readonly passed: boolean;
  /** The stage that failed, and why; null when all passed. */
  readonly stage: string | null;
  readonly reason: string | null;
  /** End of what the last stage printed. */
  readonly output: string;
  readonly cpuMs: number;
}

const shownOutput = 8000;

export function preflightStages(stages: readonly Stage[]): Stage[] {
  return stages.filter((stage) => stage.trust === "candidate" && stage.preflight);
}

/** Runs a candidate's preflight stages as a trial would, on CPU slots like any stage. `id`: names its executions and its folder. */
export async function runPreflight(
  host: PreflightHost,
  id: string,
  manifest: CandidateManifest,
  signal: AbortSignal,
): Promise<PreflightResult> {
  const folders = new AttemptFolders(join(host.scratch, id), host.giveToSandbox);
  let result: PreflightResult = { passed: true, stage: null, reason: null, output: "", cpuMs: 0 };
  try {
    for (const stage of preflightStages(host.prepared.environment.stages)) {
      const { cpuMs } = result;
      const ended = await perform(host, folders, `${id}/${stage.name}-1`, stage, manifest, signal);
      result = { ...ended, cpuMs: cpuMs + ended.cpuMs };
      if (!result.passed) break;
    }
    return result;
  } catch (error) {
    if (error instanceof CandidateLayoutError) return { ...result, passed: false, reason: error.message };
    throw error;
  } finally {
    await host.executor.forget(`${id}/`);
    await folders.remove();
  }
}

async function perform(
  host: PreflightHost,
  folders: AttemptFolders,
  id: string,
  stage: Stage,
  manifest: CandidateManifest,
  signal: AbortSignal,
): Promise<PreflightResult> {
  const { prepared, executor, sandbox, hostEnvironment } = host;
  const { gpus, release } = await host.slots.take({ ...stage.limits, exclusive: stage.exclusive, execution: id });
  const stop = (): void => void executor.stop(id).catch(() => undefined);
  try {
    signal.throwIfAborted();
    const { seed, gates } = prepared.environment;
    const run = { id, stage, repeat: 1, seed, sandbox, prepared, folders, manifest, content: host.blob, hostEnvironment, gpus };
    await executor.start(await stageExecution({ ...run, collectMaxBytes: collectCap(gates) }));
    signal.addEventListener("abort", stop, { once: true });
    // It may have been aborted while the stage was being started.
    if (signal.aborted) stop();
    const found = await executor.wait(id);
    signal.throwIfAborted();
    if (found.state === "gone") return { passed: false, stage: stage.name, reason: found.reason, output: "", cpuMs: 0 };
    const { stdout, stderr } = await executor.output(id);
    const output = Buffer.concat([stdout.head, stdout.tail, stderr.head, stderr.tail]).toString("utf8").slice(-shownOutput);
    const judgement = judgeStage(stage, found.outcome, null);
    const passed = judgement.kind === "continue";
    return { passed, stage: passed ? null : stage.name, reason: passed ? null : judgement.reason, output, cpuMs: found.outcome.cpuMs };
  } finally {
    signal.removeEventListener("abort", stop);
    release();
  }
}
