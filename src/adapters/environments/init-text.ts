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
  /** Wall-clock limit, such as "10 min". */
  readonly wall?: string | undefined;
}

/** Finds `score: 0.9`, `score=0.9`, `"score": 0.9`, or a line with nothing but a number; `nan` and `inf` too, so that they count as no result. */
export function defaultPattern(metric: string): string {
  const name = metric.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("_", "[_ -]");
  const first = /^[a-z]/i.test(name) ? `[${name.charAt(0).toUpperCase()}${name.charAt(0).toLowerCase()}]${name.slice(1)}` : name;
  return `(?:\\b${first}["']?[=: \\t]+|^[ \\t]*(?=\\S+[ \\t]*$))([-+]?(?:\\d+\\.?\\d*(?:[eE][-+]?\\d+)?|\\.\\d+(?:[eE][-+]?\\d+)?|[Nn]a[Nn]|[Ii]nf(?:inity)?)\\b)`;
}

/** JSON's strings are YAML's double-quoted ones, except for two line separators. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
}

function single(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The text of `environment.yaml`, with the reasons of what it chose. */
export function contractText(answers: InitAnswers, use: string | null): string {
  const better = answers.direction === "maximize" ? "higher" : "lower";
  const description =
    answers.description ?? `Change ${answers.edit.join(", ")} so that \`${answers.run}\` prints a ${better} ${answers.metric}.`;
  return `# Written by \`trialist init\`. Freely edited by you, frozen when a run starts.
schema: trialist/environment@1
name: ${quoted(answers.name)}

# What researchers are told. Say what the program does, what may be tried, and what would be cheating.
description: ${quoted(description)}

surface:
  editable: [${answers.edit.map(quoted).join(", ")}] # everything else in this folder is laid beside it, unchanged
  max_bytes: 1 MiB
baseline: . # the files as they are now: measured first, and again during a run
${use === null ? "" : `\n# Bound read-only as it is on this machine; a python runtime with a lock file would freeze it.\nruntime: { use: ${quoted(use)} }\n`}
stages:
  - name: run
    trust: candidate # no network, no home folder, only the files of this folder
    run: ${quoted(answers.run)}
    limits: { wall: ${answers.wall ?? "10 min"}, memory: 4 GiB, cpus: 1 }

metrics:
  # Taken from what the program itself prints, so it is marked *self-reported* everywhere: a changed program could print
  # anything. For a score that it cannot write, let the program write a file (outputs: [FILE]) and add a stage with
  # trust: evaluator that reads the file.
  - name: ${quoted(answers.metric)}
    direction: ${answers.direction}
    from: { stdout: ${single(answers.pattern ?? defaultPattern(answers.metric))}, stage: run } # the last match counts

noise: { calibrate: 5 } # how often the baseline is run before the search, to see how far the number varies by itself

promotion:
  # threshold: a change counts when it gains more than the baseline's own noise. When all repetitions print the same
  # number there is no noise, and any gain above minimum_gain counts. If your program draws at random, let it read the
  # variable TRIALIST_SEED and write "rule: confirmed" here: winners are then measured again on fresh seeds.
  rule: threshold
  minimum_gain: 0
`;
}
