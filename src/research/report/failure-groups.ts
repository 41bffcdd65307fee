import type { Trial } from "../../core/harness/state.js";
import type { TrialStatus } from "../../core/protocol/status.js";
import { decode, kept, type ReadBlob } from "./evidence.js";
import { oneLine } from "./hostile-text.js";
import type { FailureCause } from "./summary-schema.js";

/** Failed trials whose output is read, the newest: reading all of a long run's would take longer than its answer may. */
const outputsRead = 400;
/** A line that is longer is cut before anything is looked for in it. */
const longestLine = 400;
/** Lines from the end of an output among which the one that says what went wrong is looked for. */
const lastLines = 200;
/** Causes may all differ: a summary stays bounded. */
const shownCauses = 20;

/**
 * Failed trials by what went wrong: their status, their stage, and the line of their output that says why, without the
 * numbers, folders and addresses in which the same failure differs; without an output that was read, the reason. Most
 * frequent first, equals in the order of their first appearance.
 */
export function failureCauses(failed: readonly Trial[], blob: ReadBlob | undefined): FailureCause[] {
  const lines = new Map<string, string | null>();
  const groups = new Map<string, FailureCause>();
  for (const [index, trial] of failed.entries()) {
    const isRead = index >= failed.length - outputsRead;
    const line = (isRead && blob !== undefined ? outputLine(trial, blob, lines) : null) ?? firstLine(trial.reason);
    const { status, stage } = trial as { status: TrialStatus; stage: string | null };
    const cause = normalized(line);
    const key = JSON.stringify([status, stage, cause]);
    const before = groups.get(key);
    groups.set(key, {
      status,
      stage,
      cause,
      n: (before?.n ?? 0) + 1,
      trials: [...(before?.trials ?? []), trial.id].slice(-5),
      example: { trial: trial.id, line },
      hint: hintFor(status, line),
    });
  }
  return [...groups.values()].sort((a, b) => b.n - a.n).slice(0, shownCauses);
}

/** The same output is read once, however many trials end with it. */
function outputLine({ failure }: Trial, blob: ReadBlob, known: Map<string, string | null>): string | null {
  if (failure === null) return null;
  for (const { blob: digest, bytes } of [failure.stderr, failure.stdout]) {
    if (bytes === 0) continue;
    if (!known.has(digest)) {
      const content = kept(blob, digest);
      known.set(digest, content === null ? null : errorLine(decode(content)));
    }
    const line = known.get(digest) ?? null;
    if (line !== null) return line;
  }
  return null;
}

const saysWhatWentWrong = /(?:error|exception|panic|fatal|failed|not found|denied|killed|out of memory|no such|cannot|abort)/i;
/** Where a failure came by, not what it was: frames of JavaScript and Python, and Node's last word. */
const isFrame = /^\s*(?:at |File "|\^+\s*$|~+\s*$|Node\.js v)/;

/** The last line of an output that says what went wrong; else its last line; null for one that says nothing. */
export function errorLine(output: string): string | null {
  const lines = output
    .split(/\r\n|\r|\n/)
    .slice(-lastLines)
    .map((line) => withoutColours(line.slice(0, longestLine)).trim())
    .filter((line) => line !== "" && !isFrame.test(line));
  return lines.findLast((line) => saysWhatWentWrong.test(line)) ?? lines.at(-1) ?? null;
}

function firstLine(text: string): string {
  return (text.split("\n")[0] ?? "").slice(0, longestLine);
}

function withoutColours(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control sequences are what is taken out
  return line.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "");
}

/** A line without what differs from trial to trial: addresses, folders, numbers, spaces. */
export function normalized(line: string): string {
  return oneLine(line, longestLine)
    .replace(/0x[0-9a-f]+/gi, "0x…")
    .replace(/[\w.~-]*(?:\/[\w.~-]+)+/g, (path) => `…/${path.slice(path.lastIndexOf("/") + 1)}`)
    .replace(/\b[0-9a-f]{12,}\b/gi, "…")
    .replace(/(?<!\d)(?!0x…)\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi, "N")
    .slice(0, 200);
}

const hintsByLine: readonly (readonly [RegExp, string])[] = [
  [
    /ModuleNotFoundError|ImportError|Cannot find (?:module|package)|command not found|: not found$/i,
    "the frozen runtime lacks something: add it to the environment's lock, or tell researchers what there is (`trialist note`)",
  ],
  [
    /MemoryError|out of memory|Cannot allocate|bad_alloc/i,
    "too little memory: a larger limit in environment.yaml, or tell researchers the limit (`trialist note`)",
  ],
  [
    /Read-only file system|Permission denied|PermissionError|EACCES|EROFS/i,
    "a candidate writes where it may not: only its working folder and $TRIALIST_OUTPUT are writable",
  ],
  [/SyntaxError|IndentationError|TabError|parse error/i, "the researcher writes code that does not parse"],
  [/FileNotFoundError|No such file|ENOENT/i, "a candidate looks for a file that is not there: say in the description where data lies"],
];

const hintsByStatus: Readonly<Partial<Record<TrialStatus, string>>> = {
  preflight_failed: "the candidate does not pass the environment's own first check",
  timed_out: "candidates are slower than the wall limit: raise it in environment.yaml, or tell researchers the limit (`trialist note`)",
  over_budget: "a limit of the stage is too low for what candidates do, or they do too much",
  over_size: "an output is larger than its cap",
  gate_missed: "valid, and outside of a gate of the environment: tell researchers about the gate",
  no_result: "it ended without a valid result: say in the description what has to be written, and where",
  disqualified: "the evaluator caught it: look at what it did before anything else",
  infrastructure_error: "the machine's fault: `trialist doctor`",
};

/** What a person may do about it; empty where the output itself has to be read. */
function hintFor(status: TrialStatus, line: string): string {
  const byLine = status === "crashed" || status === "preflight_failed" ? hintsByLine.find(([pattern]) => pattern.test(line)) : undefined;
  return byLine?.[1] ?? hintsByStatus[status] ?? "";
}
