import type { Executor, Mount } from "../../core/ports/executor.js";
import { leaving, type Researcher, ResearcherFailedError, type RoleAnswer, type RoleRequest } from "../../core/ports/researcher.js";
import type { Amount } from "../../core/protocol/budget.js";
import { canonicalJson } from "../../core/protocol/canonical.js";
import type { StageLimits, StageOutcome } from "../../core/protocol/outcome.js";

export interface CommandResearcherOptions {
  readonly name: string;
  /** Shell command, run in `folder`. */
  readonly command: string;
  /** Host folder that the command sees read-only as its working directory. */
  readonly folder: string;
  /** Brings the folder to be there; asked before each answer. Left out: it is there. */
  readonly bringFolder?: () => Promise<void>;
  readonly executor: Executor;
  readonly sandbox: "bubblewrap" | "none";
  readonly path: readonly string[];
  readonly mounts: readonly Mount[];
  /** Wall limit of one answer, in ms; CPU time has the same limit. */
  readonly wallMs: number;
}

/** Largest answer, in bytes. */
const maxAnswerBytes = 4 * 1024 * 1024;

/**
 * A researcher that is a command: one JSON document on standard input, one on standard output, exit code 0. It runs in
 * the same sandbox as a candidate, without network and without data.
 */
export function commandResearcher(options: CommandResearcherOptions): Researcher {
  return {
    name: options.name,
    settled: ({ call, round }) => options.executor.forget(`${call}.${round}/`),
    async answer(request: RoleRequest, signal: AbortSignal): Promise<RoleAnswer> {
      const { executor } = options;
      const id = `${request.call}.${request.round}/answer-1`;
      const stop = (): void => {
        // Left alone, it comes to its end, and the next owner finds its answer.
        if (signal.reason !== leaving) void executor.stop(id).catch(() => undefined);
      };
      signal.addEventListener("abort", stop, { once: true });
      try {
        // An answer that was on its way when the runner died is found, not asked for again.
        if ((await executor.find(id)).state === "unknown") {
          await options.bringFolder?.();
          await executor.start(execution(options, id, request));
        }
        const found = await executor.wait(id);
        if (found.state === "gone") throw new ResearcherFailedError("infrastructure", found.reason, used(0));
        const { stdout, stderr } = await executor.output(id);
        assertWell(options.name, found.outcome, text(stderr));
        return { raw: Buffer.concat([stdout.head, stdout.tail]), usage: used(found.outcome.cpuMs), model: null };
      } finally {
        signal.removeEventListener("abort", stop);
      }
    },
  };
}

function execution(options: CommandResearcherOptions, id: string, request: RoleRequest): Parameters<Executor["start"]>[0] {
  const folder = options.sandbox === "none" ? options.folder : "/trialist/pack";
  const document = {
    protocol: "trialist/role@1",
    role: request.role,
    seed: request.seed,
    round: request.round,
    violations: request.violations,
    view: request.view,
  };
  return {
    id,
    command: options.command,
    workingDirectory: folder,
    environment: {
      PATH: [...options.path, "/usr/local/bin", "/usr/bin", "/bin"].join(":"),
      PYTHONDONTWRITEBYTECODE: "1",
      TRIALIST_SEED: String(request.seed),
    },
    mounts: [{ source: options.folder, target: folder, mode: "read-only" }, ...options.mounts],
    stdin: canonicalJson(document),
    limits: limits(options.wallMs),
    graceMs: 1000,
    outputFolder: null,
    outputs: [],
    collectInto: null,
    collectMaxBytes: 0,
    writableFolders: [],
    sandbox: options.sandbox,
    keepHeadBytes: maxAnswerBytes,
    keepTailBytes: 64 * 1024,
  };
}

function limits(wallMs: number): StageLimits {
  return {
    wallMs,
    cpuMs: wallMs,
    memoryBytes: 2 * 2 ** 30,
    cpus: 1,
    processes: 64,
    diskBytes: 256 * 2 ** 20,
    outputBytes: maxAnswerBytes + 64 * 1024,
  };
}

function assertWell(name: string, outcome: StageOutcome, stderr: string): void {
  const usage = used(outcome.cpuMs);
  const said = stderr.trim() === "" ? "" : ` It said: ${stderr.slice(-1500)}`;
  if (outcome.limit === "wall")
    throw new ResearcherFailedError("timed_out", `the researcher ${name} reached its wall-clock limit.${said}`, usage);
  if (outcome.limit !== null)
    throw new ResearcherFailedError("researcher_failed", `the researcher ${name} reached its ${outcome.limit} limit.${said}`, usage);
  if (outcome.signal !== null)
    throw new ResearcherFailedError("researcher_failed", `the researcher ${name} was ended by ${outcome.signal}.${said}`, usage);
  if (outcome.exitCode !== 0)
    throw new ResearcherFailedError("researcher_failed", `the researcher ${name} exited with code ${outcome.exitCode}.${said}`, usage);
  if (outcome.stdout.omittedBytes > 0)
    throw new ResearcherFailedError(
      "no_answer",
      `the researcher ${name} printed ${outcome.stdout.bytes} bytes, an answer may hold ${maxAnswerBytes}`,
      usage,
    );
}

function text(stream: { head: Uint8Array; tail: Uint8Array }): string {
  return Buffer.concat([stream.head, stream.tail]).toString("utf8");
}

function used(computeMs: number): Amount {
  return { trials: 0, costUsd: 0, tokens: 0, computeMs };
}
