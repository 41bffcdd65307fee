import { Project } from "../../../app/project.js";
import { type ReplayReport, replayRecorded } from "../../../app/replay.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, exitCodes, textOption } from "../command.js";
import { UsageError } from "../usage-error.js";

/** Decides a recorded run again. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Decides a recorded run again, offline and from its ledger alone: recorded answers and outcomes go in, and every decision must come out as it is on record.",
      )
      .argument("<run>", "name of the run")
      .option("--keep <name>", "write the replay as a run of this name (default: it is checked and forgotten)")
      .addHelpText(
        "after",
        "\nExample:\n  trialist replay night\n  trialist import night.jsonl && trialist replay night --keep night-again",
      );
  },
  async run({ args, options, folder, terminal }) {
    const [name] = args;
    if (name === undefined) throw new UsageError("replay expects the name of a run");
    const report = await replayRecorded(new Project(folder), name, textOption(options, "keep") ?? null);
    for (const line of linesOf(name, report)) terminal.say(printable(line));
    terminal.data({ run: name, ...report });
    return report.difference === null ? exitCodes.ok : exitCodes.corrupt;
  },
};

function linesOf(name: string, { events, decided, calls, reanswered, taken, otherViews, difference, chain }: ReplayReport): string[] {
  if (difference !== null)
    return [
      `${name}: the replay differs at event ${difference.sequence}: ${difference.message}`,
      `${events} events before it came out the same.`,
    ];
  const same = chain.recorded === chain.replayed;
  return [
    `${name}: ${events} events came out the same, from ${decided} decisions and ${calls} answers and failures of role calls`,
    `Answers of models got again from the recorded traffic, byte for byte: ${reanswered}; the others were read again from what came back.`,
    ...(taken === 0 ? [] : [`Taken from the record as they are: ${taken} events; nothing on record says what was handed in.`]),
    ...(otherViews === 0 ? [] : [`Views that this build makes otherwise than the build that recorded them: ${otherViews}.`]),
    same
      ? `The chain is the same: ${chain.replayed.slice(0, 16)}…`
      : "The chain differs, as it must: an older build wrote other versions of some events.",
  ];
}
