import { resolve } from "node:path";
import { openHost } from "../../../app/environments.js";
import { rescorePacket } from "../../../app/rescore.js";
import { printable } from "../../../research/report/hostile-text.js";
import { rescoreText } from "../../../research/report/rescore-text.js";
import { type CliCommand, exitCodes, numberOption, textOption, wholeNumber } from "../command.js";
import { UsageError } from "../usage-error.js";

const codes = { reproduced: exitCodes.ok, not_reproduced: exitCodes.notReproduced, undecided: exitCodes.undecided } as const;

/** Measures a packet's candidate again. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Measures the candidate of a packet again beside what it was compared with, on its seeds and on fresh ones, in the sandbox, and says whether its claim holds here.",
      )
      .argument("<packet>", "a file that `trialist pack` wrote")
      .option("--pairs <n>", "pairs on fresh seeds (default: as many as confirmed it, at least 2)", pairsOption)
      .option("--seed <n>", "what fresh seeds are drawn from (default: drawn anew)", wholeNumber("--seed"))
      .option("--data <folder>", "folder with public/ or inloop/, for data that the packet does not hold")
      .option("--host-folders", "let its programs read the folders of this machine that its contract names")
      .addHelpText(
        "after",
        "\nExample:\n  trialist rescore night-t7.tar.gz\n  trialist rescore night-t7.tar.gz --pairs 10 --data ../labels",
      );
  },
  async run({ args, options, folder, terminal }) {
    const data = textOption(options, "data");
    const leaving = new AbortController();
    const leave = (): void => leaving.abort();
    const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
    for (const signal of signals) process.once(signal, leave);
    const answer = await rescorePacket(
      await openHost(),
      {
        file: resolve(folder, args[0] ?? ""),
        pairs: numberOption(options, "pairs") ?? null,
        seed: numberOption(options, "seed") ?? null,
        dataFolder: data === undefined ? null : resolve(folder, data),
        hostFolders: options["hostFolders"] === true,
      },
      (line) => terminal.note(printable(line)),
      leaving.signal,
    ).catch((error: unknown) => {
      if (leaving.signal.aborted) return null;
      throw error;
    });
    for (const signal of signals) process.off(signal, leave);
    if (answer === null) {
      terminal.note("Left: what ran was stopped, and nothing of the packet is kept.");
      return exitCodes.interrupted;
    }
    terminal.say(rescoreText(answer, terminal.paint).trimEnd());
    terminal.data(answer);
    return codes[answer.result];
  },
};

function pairsOption(text: string): number {
  const pairs = wholeNumber("--pairs")(text);
  if (pairs < 1 || pairs > 1000) throw new UsageError(`--pairs expects 1 to 1000, ${text} was given`);
  return pairs;
}
