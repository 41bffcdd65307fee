import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { CapturedStreams, Found } from "../../core/ports/executor.js";
import { UnknownRecordError } from "../../core/protocol/errors.js";
import { type StageOutcome, stageOutcome } from "../../core/protocol/outcome.js";
import { DiskKeeper } from "./disk-keeper.js";
import { InvalidExecutionError } from "./errors.js";
import { isAlive, isOfThisBoot, type ProcessIdentity } from "./process-identity.js";

/** Written before anything is started: who would write the end, and what to clean up if it never does. */
export interface Handle {
  readonly supervisor: ProcessIdentity;
  readonly cgroups: readonly string[];
  /** Value of an environment variable that every process of an execution without a sandbox inherits. */
  readonly marker: string | null;
}

/** The folder of an execution before it has an id, with the files that are written to later. */
export interface Draft {
  readonly folder: string;
  /** Descriptor that the process writes its status to; closed by who starts it. */
  readonly status: number;
  readonly outcome: number;
}

/** The end of an execution: an outcome, or why there is none although the supervisor lived. */
export type End = { readonly outcome: StageOutcome } | { readonly gone: string };

interface EndRecord {
  readonly version: 1;
  readonly end: End;
  /** Bytes of the four parts of `output.bin`: head and tail of standard output, then of standard error. */
  readonly kept: readonly [number, number, number, number];
}

export type EndedOrGone = Exclude<Found, { state: "running" | "unknown" }>;

const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]*(\/[A-Za-z0-9][A-Za-z0-9._-]*)*$/;

/**
 * What an executor keeps on disk: a folder per execution with `handle.json` (before the start), `status` (written by
 * bubblewrap), `outcome.json` and `output.bin` (after the end). Only the supervisor writes; anybody may read.
 */
export class Records {
  private readonly executions: string;
  private readonly disk = new DiskKeeper();
  private drafts = 0;

  constructor(readonly root: string) {
    this.executions = join(root, "executions");
    mkdirSync(this.executions, { recursive: true, mode: 0o700 });
  }

  folder(id: string): string {
    if (!idPattern.test(id) || id.length > 200) {
      throw new InvalidExecutionError({
        where: id,
        expected: "an id of at most 200 letters, digits, '.', '_', '-', in parts divided by '/'",
        found: JSON.stringify(id),
        todo: "Choose another id.",
      });
    }
    // No id holds a '+', so no two ids share a folder.
    return join(this.executions, id.replaceAll("/", "+"));
  }

  /**
   * Lays out the folder of an execution that has no id yet: handle, an empty `status` and the file that will become
   * `outcome.json`. Making files is the slow part of a start, and is thus done before one is asked for.
   */
  draft(handle: Handle): Draft {
    this.drafts += 1;
    const folder = join(this.executions, `.${handle.supervisor.pid}-${handle.supervisor.startTicks}-${this.drafts}`);
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, "handle.json"), JSON.stringify(handle), { mode: 0o600 });
    return {
      folder,
      status: openSync(join(folder, "status"), "wx", 0o600),
      outcome: openSync(join(folder, "outcome.tmp"), "wx", 0o600),
    };
  }

  /** Claims an id for ever, with everything that the draft holds. False when it was claimed before. */
  claim(draft: Draft, id: string): boolean {
    try {
      // A folder that is not empty cannot be replaced, so exactly one claim of an id succeeds.
      renameSync(draft.folder, this.folder(id));
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOTEMPTY" || code === "EEXIST") return false;
      throw error;
    }
  }

  removeDraft(draft: Draft): void {
    closeSync(draft.outcome);
    rmSync(draft.folder, { recursive: true, force: true });
  }

  /**
   * Writes the end so that it is there completely or not at all, and cannot be lost by a death of this process. The
   * disk is told a little later; a record torn by a power loss before that is recognised by its digest.
   */
  writeEnd(id: string, draft: Draft, end: End, streams: CapturedStreams): void {
    const folder = this.folder(id);
    const parts = [streams.stdout.head, streams.stdout.tail, streams.stderr.head, streams.stderr.tail];
    const kept = parts.map((part) => part.byteLength) as unknown as EndRecord["kept"];
    const printed = kept.some((bytes) => bytes > 0);
    if (printed) writeFileSync(join(folder, "output.bin"), Buffer.concat(parts), { mode: 0o600 });
    const body = JSON.stringify({ version: 1, end, kept } satisfies EndRecord);
    // From its start, because an attempt on a full disk may have left a part of it.
    writeSync(draft.outcome, `${body}\n${digest(body)}\n`, 0);
    closeSync(draft.outcome);
    renameSync(join(folder, "outcome.tmp"), join(folder, "outcome.json"));
    this.disk.keep([...(printed ? [join(folder, "output.bin")] : []), join(folder, "outcome.json"), folder]);
  }

  readEnd(id: string): EndRecord | null {
    let text: string;
    try {
      text = readFileSync(join(this.folder(id), "outcome.json"), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
    const [body = "", sum = ""] = text.split("\n");
    if (digest(body) !== sum) return { version: 1, end: { gone: "its recorded end is damaged" }, kept: [0, 0, 0, 0] };
    const record = JSON.parse(body) as EndRecord;
    if (record.version !== 1) {
      throw new UnknownRecordError({
        where: this.folder(id),
        expected: "the end of an execution in version 1",
        found: `version ${JSON.stringify(record.version)}`,
        todo: "Use the trialist that wrote it.",
      });
    }
    return "gone" in record.end ? record : { ...record, end: { outcome: stageOutcome.parse(record.end.outcome) } };
  }

  readHandle(id: string): Handle | null {
    return readHandleIn(this.folder(id));
  }

  /** What became of an execution, from what is written. */
  find(id: string): Found {
    const ended = this.readEnd(id);
    if (ended !== null) return asFound(ended.end);
    const handle = this.readHandle(id);
    if (handle === null) {
      // A claim brings its handle: only a power loss leaves one without.
      return existsSync(this.folder(id)) ? { state: "gone", reason: "its record was lost when the machine stopped" } : { state: "unknown" };
    }
    if (isAlive(handle.supervisor)) return { state: "running" };
    // It may have written the end between our two looks.
    const late = this.readEnd(id);
    if (late !== null) return asFound(late.end);
    const reason = isOfThisBoot(handle.supervisor) ? "its supervisor died before it ended" : "the machine started anew before it ended";
    return { state: "gone", reason };
  }

  readOutput(id: string): CapturedStreams {
    const [outHead, outTail, errHead, errTail] = this.readEnd(id)?.kept ?? [0, 0, 0, 0];
    const total = outHead + outTail + errHead + errTail;
    const bytes = total === 0 ? Buffer.alloc(0) : readFileSync(join(this.folder(id), "output.bin"));
    const cut = (start: number, length: number): Uint8Array => bytes.subarray(start, start + length);
    return {
      stdout: { head: cut(0, outHead), tail: cut(outHead, outTail) },
      stderr: { head: cut(outHead + outTail, errHead), tail: cut(outHead + outTail + errHead, errTail) },
    };
  }

  /** Before its process starts: who comes after a death of its owner must not give them to another. */
  writeGpus(id: string, gpus: readonly number[]): void {
    writeFileSync(join(this.folder(id), "gpus.json"), JSON.stringify(gpus), { mode: 0o600 });
  }

  readGpus(id: string): readonly number[] {
    try {
      return JSON.parse(readFileSync(join(this.folder(id), "gpus.json"), "utf8")) as readonly number[];
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Torn by a power loss: what it was about does not run any more.
      if (code === "ENOENT" || code === "ENOTDIR" || error instanceof SyntaxError) return [];
      throw error;
    }
  }

  ids(): string[] {
    const names = readdirSync(this.executions).filter((name) => !name.startsWith("."));
    return names.map((name) => name.replaceAll("+", "/"));
  }

  remove(id: string): void {
    rmSync(this.folder(id), { recursive: true, force: true });
  }

  /** Removes what a dead supervisor had laid out for its next start, and names the cgroups that belonged to it. */
  removeDrafts(): string[] {
    const cgroups: string[] = [];
    for (const name of readdirSync(this.executions)) {
      if (!name.startsWith(".")) continue;
      const folder = join(this.executions, name);
      cgroups.push(...(readHandleIn(folder)?.cgroups ?? []));
      rmSync(folder, { recursive: true, force: true });
    }
    return cgroups;
  }
}

/** Null when there is none, or only a part of one because its writer died. */
function readHandleIn(folder: string): Handle | null {
  try {
    return JSON.parse(readFileSync(join(folder, "handle.json"), "utf8")) as Handle;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || error instanceof SyntaxError) return null;
    throw error;
  }
}

export function asFound(end: End): EndedOrGone {
  return "gone" in end ? { state: "gone", reason: end.gone } : { state: "ended", outcome: end.outcome };
}

function digest(body: string): string {
  return createHash("sha256").update(body).digest("hex");
}
