import { resolve } from "node:path";
import { initFolder } from "../../../app/init.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, type CommandInput, exitCodes, textOption } from "../command.js";
import { UsageError } from "../usage-error.js";

/** Turns a folder with a script into an environment. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Turns a folder with one script into an environment, by asking or by flags. Writes environment.yaml, and in a git repository a line of .gitignore.",
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
      .option("--force", "replace an environment.yaml that is there", false)
      .addHelpText(
        "after",
        "\nA number that the program prints is self-reported: the program could print any. An evaluator of your own, in\nenvironment.yaml, takes that away.\n\nExample:\n  trialist init --yes --edit train.sh --run 'sh train.sh' --metric score --direction maximize",
      );
  },
  async run(input) {
    const folder = resolve(input.folder, input.args[0] ?? ".");
    const made = await initFolder(folder, answersOf(input), { ask: input.options.yes !== true, force: input.options.force === true });
    for (const file of made.wrote) input.terminal.say(`wrote ${file}`);
    for (const note of made.notes) input.terminal.say(printable(note));
    input.terminal.say(
      "Next: `trialist check .`, then `trialist run . --researcher 'command:python3 propose.py'`, where the command writes its proposals; `trialist run --help` shows how.",
    );
    input.terminal.data({ wrote: made.wrote, notes: made.notes, name: made.environment.environment.name });
    return exitCodes.ok;
  },
};

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
