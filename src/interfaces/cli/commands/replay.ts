import { Project } from "../../../app/project.js";
import { type PolicyChange, type Redecided, type ReplayReport, redecideRecorded, replayRecorded } from "../../../app/replay.js";
import { secretsOf } from "../../../app/secrets.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, type CommandInput, exitCodes, textOption } from "../command.js";
import { describeOrganizationOptions, givenOrganizationOptions } from "../organization-options.js";
import { promotionRule } from "../promotion-options.js";
import { UsageError } from "../usage-error.js";

const example = `
With --organization, an option of it, or --rule the run is decided under that policy instead, up to the first question
that is not on record; nothing is executed and nobody is asked.

Example:
  trialist replay night
  trialist import night.jsonl --name night && trialist replay night --keep night-again
  trialist replay night --rule any
  trialist replay night --debug-probability 0.9`;

/** Decides a recorded run again. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Decides a recorded run again, offline and from its ledger alone: recorded answers and outcomes go in, and every decision must come out as it is on record.",
      )
      .argument("<run>", "name of the run")
      .option("--keep <name>", "write the replay as a run of this name (default: it is checked and forgotten)")
      .option("--organization <name>", "decide under this policy instead")
      .option("--rule <rule>", "decide under this promotion rule instead: any, threshold or confirmed")
      .addHelpText("after", example);
    describeOrganizationOptions(program);
  },
  async run({ args, options, folder, terminal }) {
    const [name] = args;
    if (name === undefined) throw new UsageError("replay expects the name of a run");
    const change = policyChange(options);
    if (change !== null) return redecided(name, redecideRecorded(new Project(folder), name, change), terminal);
    const report = await replayRecorded(new Project(folder), name, textOption(options, "keep") ?? null, secretsOf(process.env));
    for (const line of linesOf(name, report)) terminal.say(printable(line));
    terminal.data({ run: name, ...report });
    return report.difference === null ? exitCodes.ok : exitCodes.corrupt;
  },
};

/** Null when the options ask for the recorded policy. */
function policyChange(options: CommandInput["options"]): PolicyChange | null {
  const named = textOption(options, "organization");
  const rule = promotionRule(options);
  const configuration = givenOrganizationOptions(options);
  const isChanged = named !== undefined || Object.keys(configuration).length > 0;
  if (!isChanged && rule === undefined) return null;
  return {
    ...(isChanged ? { organization: { name: named ?? null, configuration } } : {}),
    ...(rule === undefined ? {} : { promotion: { rule } }),
  };
}

function redecided(name: string, report: Redecided, terminal: CommandInput["terminal"]): number {
  const { trials, calls, leader, statuses, notOnRecord, phase } = report;
  const counted = Object.entries(statuses).map(([status, count]) => `${count} ${status}`);
  terminal.say(printable(`${name} under the changed policy: ${trials} trials, ${calls} rounds of calls; ${counted.join(", ")}`));
  if (leader !== null) terminal.say(printable(`Best: ${leader.trial} with ${JSON.stringify(leader.values)}`));
  terminal.say(
    notOnRecord === null ? `It came to its end: ${phase}.` : printable(`It asks what is not on record: ${notOnRecord}. There it stops.`),
  );
  terminal.data({ run: name, ...report });
  return exitCodes.ok;
}

function linesOf(
  name: string,
  { events, decided, calls, reanswered, toolCalls, taken, otherViews, difference, chain }: ReplayReport,
): string[] {
  if (difference !== null)
    return [
      `${name}: the replay differs at event ${difference.sequence}: ${difference.message}`,
      `${events} events before it came out the same.`,
    ];
  const same = chain.recorded === chain.replayed;
  return [
    `${name}: ${events} events came out the same, from ${decided} decisions and ${calls} answers and failures of role calls`,
    `Answers of models got again from the recorded traffic, byte for byte: ${reanswered}; the others were read again from what came back.`,
    ...(toolCalls === 0
      ? []
      : [`Long sessions are covered by their ${toolCalls} tool calls and what they handed in, not by what was said in them.`]),
    ...(taken === 0 ? [] : [`Taken from the record as they are: ${taken} events; nothing on record says what was handed in.`]),
    ...(otherViews === 0 ? [] : [`Views that this build makes otherwise than the build that recorded them: ${otherViews}.`]),
    same
      ? `The chain is the same: ${chain.replayed.slice(0, 16)}…`
      : "The chain differs, as it must: an older build wrote other versions of some events.",
  ];
}
