import { globOfPath } from "./globs.js";
import { shellWord } from "./init-toolchain.js";

/** What `trialist init` needs to know. */
export interface InitAnswers {
  /** Files or globs that may be edited. */
  readonly edit: readonly string[];
  /** Shell command that runs the program. */
  readonly run: string;
  /** Name of the number that the program prints. */
  readonly metric: string;
  readonly direction: "minimize" | "maximize";
  readonly name: string;
  /** Regular expression whose first group is the number. Default: `metric: 0.9`, `metric=0.9`, or a line that is a number. */
  readonly pattern?: string | undefined;
  readonly description?: string | undefined;
  /** JSON file, relative to the folder, that the program writes the number to; else it is printed. */
  readonly metricFile?: string | undefined;
  /** The program writes that file below TRIALIST_OUTPUT by itself. */
  readonly usesOutputFolder?: boolean | undefined;
  /** Folders that are bound read-only: outside of the pack, or ignored by git. */
  readonly mounts?: readonly { readonly source: string; readonly target: string }[] | undefined;
  /** Wall-clock limit, such as "10 min". */
  readonly wall?: string | undefined;
  /** Why the folder suggested what nobody gave. */
  readonly reasons?: readonly string[] | undefined;
}

/** What only a measurement of the baseline can tell. */
export interface MeasuredFacts {
  readonly wall?: string;
  readonly memory?: string;
  /** The number differs from seed to seed, so that winners can be confirmed. */
  readonly varies?: boolean;
  /** A line for whoever opens the file: why the baseline gave no number. */
  readonly note?: string;
}

/** Limits of a program that was never measured. */
const unmeasured = { wall: "10 min", memory: "4 GiB" } as const;

/** Finds `score: 0.9`, `score=0.9`, `"score": 0.9`, or a line with nothing but a number; `nan` and `inf` too, so that they count as no result. */
export function defaultPattern(metric: string): string {
  const nested = nestedPattern(metric);
  const name = metric.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("_", "[_ -]");
  const first = /^[a-z]/i.test(name) ? `[${name.charAt(0).toUpperCase()}${name.charAt(0).toLowerCase()}]${name.slice(1)}` : name;
  return `(?:\\b${first}["']?[=: \\t]+|${nested}^[ \\t]*(?=\\S+[ \\t]*$))([-+]?(?:\\d+\\.?\\d*(?:[eE][-+]?\\d+)?|\\.\\d+(?:[eE][-+]?\\d+)?|[Nn]a[Nn]|[Ii]nf(?:inity)?)\\b)`;
}

/** `{"val": {"loss": 0.3}}` on one line, for the name `val.loss`. */
function nestedPattern(metric: string): string {
  const names = metric.split(".");
  if (names.length < 2 || names.some((name) => !/^\w+$/.test(name))) return "";
  return `${names.map((name) => `"${name}":[ \\t]*`).join("\\{[^{}]*")}|`;
}

/**
 * The command with the JSON file brought to where outputs are collected. One that lies in the pack goes first: what a
 * program did not write itself is no result. A missing file is for the collector to find.
 */
export function collecting(run: string, file: string): string {
  if (/TRIALIST_OUTPUT|\{output\}/.test(run)) return run;
  const slash = file.lastIndexOf("/");
  const folder = slash < 0 ? "" : file.slice(0, slash);
  const before = `${folder === "" ? "" : `mkdir -p ${shellWord(folder)}; `}rm -f ${shellWord(file)}; `;
  const target = folder === "" ? '"$TRIALIST_OUTPUT"' : `"$TRIALIST_OUTPUT"/${shellWord(folder)}`;
  // Only what is a file: to copy a FIFO would wait for ever.
  const after = `if [ -f ${shellWord(file)} ]; then ${folder === "" ? "" : `mkdir -p ${target}; `}cp -P ${shellWord(file)} ${target}/; fi`;
  return `${before}${/[;|&\n#]/.test(run) ? `( ${run}\n)` : run} && ${after}`;
}

/** JSON's strings are YAML's double-quoted ones, except for two line separators. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

function single(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function mountsText(mounts: NonNullable<InitAnswers["mounts"]>): string {
  if (mounts.length === 0) return "";
  const lines = mounts.map(({ source, target }) => `  - { source: ${quoted(source)}, target: ${quoted(target)} }\n`);
  return `\n# Bound read-only as they are on this machine; a run notices when a file's name, size or time changes.\nmounts:\n${lines.join("")}`;
}

function sourceText({ metric, metricFile, pattern }: InitAnswers): string {
  if (metricFile !== undefined) return `{ json: ${quoted(metricFile)}, key: ${quoted(metric)}, stage: run }`;
  return `{ stdout: ${single(pattern ?? defaultPattern(metric))}, stage: run } # the last match counts`;
}

/** One comment line, whatever a program printed. */
function noteText(note: string | undefined): string {
  if (note === undefined) return "";
  const line = note.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\s]+/gu, " ").slice(0, 500);
  return `# NOTE: when this was written, the baseline gave no number: ${line}\n`;
}

function promotionText(varies: boolean): string {
  if (varies)
    return `promotion:
  # confirmed: the number differed from seed to seed, so what looks better is measured again on fresh seeds, each beside the
  # best so far. More confirmations see smaller gains; with two, only a gain of several times the noise would be found.
  rule: confirmed
  confirmations: 5
`;
  return `promotion:
  # threshold: a change counts when it gains more than the baseline's own noise. When all repetitions print the same
  # number there is no noise, and any gain above minimum_gain counts. If your program draws at random, let it read the
  # variable TRIALIST_SEED and write "rule: confirmed" here: winners are then measured again on fresh seeds.
  rule: threshold
  minimum_gain: 0
`;
}

/** The text of `environment.yaml`, with the reasons of what it chose. */
export function contractText(answers: InitAnswers, use: string | null, found: MeasuredFacts = {}): string {
  const better = answers.direction === "maximize" ? "higher" : "lower";
  const { metricFile: file, usesOutputFolder: own } = answers;
  const reports = file === undefined ? "prints" : "reports";
  const description =
    answers.description ?? `Change ${answers.edit.join(", ")} so that \`${answers.run}\` ${reports} a ${better} ${answers.metric}.`;
  return `# Written by \`trialist init\`. Freely edited by you, frozen when a run starts.
${noteText(found.note)}schema: trialist/environment@1
name: ${quoted(answers.name)}

# What researchers are told. Say what the program does, what may be tried, and what would be cheating.
description: ${quoted(description)}

surface:
  editable: [${answers.edit.map(quoted).join(", ")}] # everything else in this folder is laid beside it, unchanged
  max_bytes: 1 MiB
baseline: . # the files as they are now: measured first, and again during a run
${use === null ? "" : `\n# Bound read-only as it is on this machine; a python runtime with a lock file would freeze it.\nruntime: { use: ${quoted(use)} }\n`}${mountsText(answers.mounts ?? [])}
stages:
  - name: run
    trust: candidate # no network, no home folder, only the files of this folder
    run: ${quoted(file === undefined || own === true ? answers.run : collecting(answers.run, file))}${file === undefined ? "" : `\n    outputs: [${quoted(globOfPath(file))}] # below $TRIALIST_OUTPUT, which the command copies it to`}
    limits: { wall: ${answers.wall ?? found.wall ?? unmeasured.wall}, memory: ${found.memory ?? unmeasured.memory}, cpus: 1 }

metrics:
  # Taken from what the program itself ${file === undefined ? "prints" : "writes"}, so it is marked *self-reported* everywhere: a changed program could ${file === undefined ? "print" : "write"}
  # anything. For a score that it cannot make up, let the program write a file (outputs: [FILE]) and add a stage with
  # trust: evaluator that reads the file.
  - name: ${quoted(file === undefined ? answers.metric : answers.metric.replaceAll(/[^A-Za-z0-9_.@-]/g, "_"))}
    direction: ${answers.direction}
    from: ${sourceText(answers)}

noise: { calibrate: 5 } # how often the baseline is run before the search, to see how far the number varies by itself

${promotionText(found.varies === true)}`;
}
