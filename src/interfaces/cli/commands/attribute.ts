import { type AttributionTask, nextListRun, planAttribution } from "../../../app/attribute.js";
import { keepDocument, readAttribution } from "../../../app/attribution.js";
import { openHost } from "../../../app/environments.js";
import { ownRun } from "../../../app/own-run.js";
import { Project } from "../../../app/project.js";
import { attributionText } from "../../../research/report/attribution-text.js";
import { duration, plural, significant } from "../../../research/report/numbers.js";
import { type CliCommand, type CommandInput, exitCodes, numberOption, positiveNumber, textOption, wholeNumber } from "../command.js";
import { agreed } from "../confirm.js";
import { driveRun } from "../drive.js";
import { UsageError } from "../usage-error.js";

/** Which of its changes a winner owes its gain to. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Measures the winner without each of its changes, in pairs on fresh seeds, then the winner without all that it does not need. Called again, it goes on where it was.",
      )
      .argument("<run>", "name of a run that nobody works on")
      .option("--trial <trial>", "another trial than the best")
      .option("--by <unit>", "step: each kept trial; hunk: each hunk of the whole difference (default: step)")
      .option("--pairs <n>", "fresh-seed pairs per comparison (default: the run's confirmations, at least 3)", wholeNumber("--pairs"))
      .option(
        "--margin <gain>",
        "a gain below which two recipes count as equal (default: the run's smallest gain)",
        positiveNumber("--margin"),
      )
      .option("--parallel <n>", "trials at once (default: as the run)", wholeNumber("--parallel"))
      .option("--name <name>", "name of the run that measures (default: the run's, with -attribution)")
      .option("--yes", "do not ask before it measures", false)
      .addHelpText(
        "after",
        "\nExample:\n  trialist attribute night\n  trialist attribute night --by hunk --pairs 5 --name night-hunks --yes",
      );
  },
  async run(input) {
    const { terminal, options } = input;
    const name = input.args[0] ?? "";
    const project = new Project(input.folder);
    const host = await openHost();
    const task = await planAttribution(project, requestOf(input, name));
    announce(task, input);
    if (!task.isBegun) await agreed(questionOf(task), options.yes === true, terminal);
    for (let list = await nextListRun(project, host, task); list !== null; list = await nextListRun(project, host, task)) {
      await keep(project, task);
      const code = await measure(project, list, input);
      if (code !== exitCodes.ok) {
        terminal.note(`\`trialist attribute ${name}\` goes on where it was.`);
        return code;
      }
    }
    const document = await keep(project, task);
    terminal.say(document === null ? "" : attributionText(document, terminal.paint));
    terminal.data(document);
    return document?.state === "failed" ? exitCodes.refused : exitCodes.ok;
  },
};

function requestOf({ options }: CommandInput, run: string): Parameters<typeof planAttribution>[1] {
  const by = textOption(options, "by") ?? null;
  if (by !== null && by !== "step" && by !== "hunk") throw new UsageError(`--by expects step or hunk, ${by} was given`);
  const pairs = numberOption(options, "pairs") ?? null;
  if (pairs !== null && (pairs < 2 || pairs > 100)) throw new UsageError(`--pairs expects 2 to 100, ${pairs} was given`);
  const parallel = numberOption(options, "parallel") ?? null;
  if (parallel !== null && (parallel < 1 || parallel > 256)) throw new UsageError(`--parallel expects 1 to 256, ${parallel} was given`);
  const [trial, name, margin] = [
    textOption(options, "trial") ?? null,
    textOption(options, "name") ?? null,
    numberOption(options, "margin") ?? null,
  ];
  return { run, trial, by, pairs, margin, parallel, name };
}

function announce({ plan, run, list, promotion, sandbox, isBegun }: AttributionTask, { terminal }: CommandInput): void {
  const { winner, changes, ablations } = plan;
  terminal.note(
    `${run}: ${winner} in ${plural(changes.length, "change")} (${changes.map(({ id }) => id).join(", ")}); ${plural(ablations.length, "recipe")} to compare with it, ${plural(promotion.confirmations, "pair")} each; neutral means within ${significant(promotion.minimumGain, 3)} of nothing; run ${list}${isBegun ? ", begun before" : ""}`,
  );
  if (sandbox === "none") terminal.note("WARNING: without a sandbox, as the run was.");
}

function questionOf({ estimate }: AttributionTask): string {
  return `${plural(estimate.measurements, "measurement")}, and at most ${estimate.atMostMore} more for the smallest recipe: about ${duration(estimate.wallMs)}. Measure?`;
}

async function keep(project: Project, { run, list }: AttributionTask): ReturnType<typeof readAttribution> {
  const document = await readAttribution(project, run, list);
  if (document !== null) await keepDocument(project, document);
  return document;
}

async function measure(project: Project, list: string, { terminal }: CommandInput): Promise<number> {
  const owned = await ownRun(project, await openHost(), list, { frozen: true, progress: (line) => terminal.note(line) });
  owned.runner.command({ type: "resume", reason: "attribution goes on" });
  return driveRun(owned, list, terminal);
}
