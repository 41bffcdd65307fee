import { z } from "zod";
import { decide } from "../core/harness/decide.js";
import { trialNamed } from "../core/harness/state.js";
import { type CandidateFile, manifestOf, readManifest } from "../core/protocol/candidate.js";
import { canonicalJson, digestOf } from "../core/protocol/canonical.js";
import { type Command, operatorCommand, type TimelessCommand } from "../core/protocol/commands.js";
import type { Environment } from "../core/protocol/environment.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { ManifestReference } from "../core/protocol/ids.js";
import type { Run } from "../research/runner/run.js";

/** A candidate with its files, from a process that does not own the run: the owner makes blobs and `enqueue` of it. */
export const candidateMessage = z.strictObject({
  type: z.literal("add_candidate"),
  base: z.string().max(20),
  before: z.string().max(20).nullable(),
  hypothesis: z.string().min(1).max(20_000),
  reason: z.string().min(1).max(2000),
  move: z.record(z.string().max(40), z.string().max(200)),
  files: z
    .array(z.strictObject({ path: z.string().min(1).max(1000), executable: z.boolean(), content: z.base64() }))
    .min(1)
    .max(2000),
});
export type CandidateMessage = z.infer<typeof candidateMessage>;

/** What became of what was asked. */
export interface Performed {
  readonly phase: string;
  readonly version: number;
  /** Where a candidate was added: its place in the queue. */
  readonly entry?: string;
}

const mebibyte = 2 ** 20;

/** Most characters of a message to a run's owner: a whole surface in base64, with its paths. */
export function longestMessage({ maxBytes }: Environment["surface"]): number {
  return Math.min(64 * mebibyte, 4 * mebibyte + Math.ceil((maxBytes * 4) / 3));
}

/**
 * Carries out what a person asked of a run from another process, in the process that owns it.
 * @throws RefusedError when the run does not allow it, or when it is no message; nothing was recorded then
 */
export function perform(run: Run, asked: unknown, dispatch: (command: TimelessCommand) => void): Performed {
  const isCandidate = typeof asked === "object" && asked !== null && "type" in asked && asked.type === "add_candidate";
  dispatch(isCandidate ? enqueueCommand(run, fitting(candidateMessage, asked)) : fitting(operatorCommand, asked));
  const { phase, version, counters } = run.state;
  return { phase, version, ...(isCandidate ? { entry: `q${counters.queue}` } : {}) };
}

/** A schema's own error is JSON for programs, and this one is read by whoever sent the message. */
function fitting<T>(schema: z.ZodType<T>, asked: unknown): T {
  const read = schema.safeParse(asked);
  if (read.success) return read.data;
  throw new RefusedError(
    { expected: "a request that a run takes", found: z.prettifyError(read.error).replaceAll(/\s*\n\s*/g, " ") },
    { cause: read.error },
  );
}

/** Stores the candidate's blobs, unless the run would refuse it. */
function enqueueCommand(run: Run, { files, base, before, hypothesis, reason, move }: CandidateMessage): TimelessCommand {
  const contents = files.map(({ content }) => Buffer.from(content, "base64"));
  const listed = files.map(({ path, executable }, index): CandidateFile => {
    const bytes = contents[index] ?? Buffer.alloc(0);
    return { path, digest: digestOf(bytes), bytes: bytes.byteLength, executable };
  });
  refuseTwice(listed);
  const manifest = manifestOf(listed);
  const document = new TextEncoder().encode(canonicalJson(manifest));
  const candidate: ManifestReference = { blob: digestOf(document), bytes: document.byteLength, manifest: true };
  const edited = [...new Set([...manifest.files.map(({ path }) => path), ...pathsOf(run, base)])];
  const command = { type: "enqueue", base, before, hypothesis, reason, move, submitter: "operator", candidate, manifest, edited } as const;
  // Refused before its bytes are stored, where nothing would name them.
  decide(run.state, { ...command, at: run.now() } as Command);
  for (const bytes of [...contents, document]) run.putBlob(bytes);
  return command;
}

function refuseTwice(files: readonly CandidateFile[]): void {
  const seen = new Set<string>();
  for (const { path } of files) {
    if (seen.has(path)) throw new RefusedError({ expected: "every file once", found: `${JSON.stringify(path)} twice` });
    seen.add(path);
  }
}

/** What the candidate may have removed counts as edited too. */
function pathsOf(run: Run, base: string): string[] {
  const trial = trialNamed(run.state, base);
  if (trial === null) return [];
  return readManifest(run.ledger.blob(trial.candidate.blob)).files.map(({ path }) => path);
}
