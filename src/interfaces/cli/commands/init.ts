import { relative, resolve } from "node:path";
import { type Host, openHost } from "../../../app/environments.js";
import { digestOfFolder, initFolder, type MeasuredInit, measureInit } from "../../../app/init.js";
import { oneLine, printable } from "../../../research/report/hostile-text.js";
import { duration } from "../../../research/report/numbers.js";
import { type CliCommand, type CommandInput, exitCodes, textOption } from "../command.js";
import { measuredLines } from "../init-lines.js";
import type { Terminal } from "../terminal.js";
import { UsageError } from "../usage-error.js";

/** Turns a folder with a script into an environment. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Turns a folder with a program into an environment: looks at it, asks or takes flags, writes environment.yaml (and in a git repository a line of .gitignore), then measures the program once.",
      )
      .argument("[folder]", "the folder", ".")
      .option("--yes", "do not ask: take the flags, and what the folder suggests", false)
      .option("--edit <glob>", "a file that researchers may edit, or a glob; may be given again", several)
      .option("--run <command>", "shell command that runs the program")
      .option("--metric <name>", "the number that counts; the program prints `NAME: 0.123`, or `NAME=0.123`, or writes it into a JSON file")
      .option("--metric-file <file>", "JSON file that the program writes the number to; --metric is then its place in it, such as val.loss")
      .option("--direction <direction>", "maximize or minimize")
      .option("--pattern <regex>", "how the number is found in the output, if not by its name")
      .option(
        "--mount <folder>",
        "a folder, bound read-only, that the program reads and git ignores; FOLDER:PLACE; may be given again",
        several,
      )
      .option("--wall <duration>", "wall-clock limit of a trial, such as `2 h` (default: 10 min)")
      .option("--name <name>", "name of the environment (default: the folder's)")
      .option("--no-baseline", "write the file and measure nothing")
      .option("--force", "replace an environment.yaml that is there", false)
      .addHelpText(
        "after",
        "\nA number that the program prints is self-reported: the program could print any. An evaluator of your own, in\nenvironment.yaml, takes that away.\n\nExample:\n  trialist init --yes --edit train.sh --run 'sh train.sh' --metric score --direction maximize",
      );
  },
  async run(input) {
    const folder = resolve(input.folder, input.args[0] ?? ".");
    const ask = input.options.yes !== true;
    const made = await initFolder(folder, answersOf(input), { ask, force: input.options.force === true });
    for (const file of made.wrote) input.terminal.say(`wrote ${printable(file)}`);
    for (const note of made.notes) input.terminal.say(printable(note));
    const host = await openHost();
    const measured = input.options.baseline === false ? null : await measure(host, input.terminal, made, ask);
    const path = printable(shown(folder, input.folder));
    if (measured !== null) for (const line of measuredLines(measured, made.environment.environment.metrics)) input.terminal.say(line);
    const digest = await digestOfFolder(host, folder);
    if (digest !== null) input.terminal.say(`as it lies here now, its digest is ${digest}`);
    if (measured === null || measured.costs !== null) input.terminal.say(nextSteps(path));
    input.terminal.data({ wrote: made.wrote, notes: made.notes, name: made.environment.environment.name, digest, ...measured });
    return measured === null ? exitCodes.ok : exitCodeOf(measured.baseline.status);
  },
};

/** Measures the baseline with live progress; Ctrl-C stops it, and what was written stays. */
async function measure(host: Host, terminal: Terminal, made: Awaited<ReturnType<typeof initFolder>>, ask: boolean): Promise<MeasuredInit> {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, stop);
  const [stage] = made.environment.environment.stages;
  terminal.note(`measuring the baseline once, for at most ${duration(stage?.limits.wallMs ?? null)}; Ctrl-C stops it`);
  try {
    return await measureInit(host, made, {
      ask,
      signal: controller.signal,
      listener: {
        progress: (line) => terminal.note(line),
        live: (name, elapsedMs, lastLine) => terminal.live(oneLine(`${name}: ${duration(elapsedMs)}  ${lastLine}`)),
      },
    });
  } finally {
    for (const signal of signals) process.off(signal, stop);
    terminal.live("");
  }
}

function exitCodeOf(status: string): number {
  if (status === "measured") return exitCodes.ok;
  if (status === "interrupted") return exitCodes.interrupted;
  return status === "infrastructure_error" ? exitCodes.infrastructure : exitCodes.corrupt;
}

/** The folder as the next command names it. */
function shown(folder: string, from: string): string {
  const path = relative(from, folder);
  return path === "" ? "." : /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function nextSteps(path: string): string {
  return `Next: \`trialist check ${path}\`, then \`trialist run ${path} --researcher 'command:python3 propose.py'\`, where the command writes its proposals; \`trialist run --help\` shows how.`;
}

function several(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

/** `FOLDER`, or `FOLDER:PLACE`; a folder of the environment lies at the same place in the workspace, another at its own path. */
function mountOf(text: string): { source: string; target: string } {
  const colon = text.lastIndexOf(":");
  const [source, target] = colon > 0 ? [text.slice(0, colon), text.slice(colon + 1)] : [text, text];
  if (source === "" || target === "") throw new UsageError(`--mount expects FOLDER or FOLDER:PLACE, ${JSON.stringify(text)} was given`);
  const plain = (path: string): string => path.replace(/^(\.\/)+/, "").replace(/(.)\/+$/, "$1");
  return { source: plain(source), target: plain(target) };
}

function answersOf({ options }: CommandInput): Parameters<typeof initFolder>[1] {
  const direction = textOption(options, "direction");
  if (direction !== undefined && direction !== "maximize" && direction !== "minimize")
    throw new UsageError(`--direction expects maximize or minimize, ${direction} was given`);
  const [run, metric, pattern, name, metricFile, wall] = ["run", "metric", "pattern", "name", "metricFile", "wall"].map((option) =>
    textOption(options, option),
  );
  if (pattern !== undefined && metricFile !== undefined)
    throw new UsageError("--pattern is about what is printed, --metric-file about a file: give one of the two");
  return {
    ...(Array.isArray(options.mount) ? { mounts: options.mount.map((text) => mountOf(String(text))) } : {}),
    ...(metricFile === undefined ? {} : { metricFile: metricFile.replace(/^(\.\/)+/, "") }),
    ...(wall === undefined ? {} : { wall: wall.replace(/^([\d.]+)\s*([a-z]+)$/i, "$1 $2") }),
    ...(Array.isArray(options.edit) ? { edit: options.edit.map(String) } : {}),
    ...(run === undefined ? {} : { run }),
    ...(metric === undefined ? {} : { metric }),
    ...(pattern === undefined ? {} : { pattern }),
    ...(name === undefined ? {} : { name }),
    ...(direction === undefined ? {} : { direction }),
  };
}
