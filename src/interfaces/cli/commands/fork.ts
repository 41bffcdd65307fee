import { openHost } from "../../../app/environments.js";
import { type ForkRequest, forkRun } from "../../../app/fork-run.js";
import { Project } from "../../../app/project.js";
import { type CliCommand, type CommandInput, numberOption, reasonOption, textOption, wholeNumber } from "../command.js";
import { afterHeldoutLook, budgetChange, describeContinuationOptions } from "../continuation-options.js";
import { goOn } from "../go-on.js";
import { describeResearcherOptions, researcherChoice } from "../researcher-options.js";
import { UsageError } from "../usage-error.js";

const example = `
The fork begins with the source's record, byte for byte: calibration, trials and knowledge are not measured again. The source
is only read, also while a process works on it; what is open in it stays its own. Environment, organization, promotion rule
and sandbox are the source's. Caps are totals that count what was inherited; +N adds N to that.

Example:
  trialist fork night --name boosted --at t12 --researcher anthropic:claude-sonnet-4-5 --max-trials +20 --max-cost 5
  trialist fork night --name again --seed 2`;

/** Begins a run with another's record. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Begins a new run with the record of another one, up to a trial or to now, and goes on by itself.")
      .argument("<run>", "name of the run to begin with")
      .requiredOption("--name <name>", "name of the new run")
      .option("--at <trial>", "inherit no more than up to the end of this trial, such as t12 (default: all by now)")
      .option("--reason <text>", "why; recorded", reasonOption, "forked from the command line")
      .option("--seed <n>", "seed of researchers and of the policy's draws (default: the source's)", wholeNumber("--seed"))
      .option("--parallel <n>", "trials at once (default: the source's)", wholeNumber("--parallel"));
    describeContinuationOptions(program);
    describeResearcherOptions(program, "none");
    program.addHelpText("after", example);
  },
  async run(input) {
    const { options, folder, terminal } = input;
    const [project, host, request] = [new Project(folder), await openHost(), requestOf(input)];
    const source = input.args[0] ?? "";
    await forkRun(project, host, source, request);
    terminal.note(`run ${request.name}, a fork of ${source}`);
    return await goOn(project, host, request.name, options.detach === true, terminal);
  },
};

function requestOf(input: CommandInput): ForkRequest {
  const { options } = input;
  const parallel = numberOption(options, "parallel") ?? null;
  if (parallel !== null && (parallel < 1 || parallel > 256)) throw new UsageError(`--parallel expects 1 to 256, ${parallel} was given`);
  return {
    ...budgetChange(input),
    name: textOption(options, "name") ?? "",
    at: textOption(options, "at") ?? null,
    reason: String(options["reason"]),
    researchers: researchersOf(options),
    seed: numberOption(options, "seed") ?? null,
    parallel,
    frozen: options["frozen"] === true,
    afterHeldoutLook: afterHeldoutLook(input),
  };
}

/** All of them anew, or the source's. */
function researchersOf(options: CommandInput["options"]): ForkRequest["researchers"] {
  if (textOption(options, "researcher") !== undefined) return researcherChoice(options);
  for (const [option, flag] of Object.entries({ model: "--model", baseUrl: "--base-url", turns: "--turns", role: "--role" }))
    if (options[option] !== undefined)
      throw new UsageError(`${flag} of a fork needs --researcher: a fork names all its researchers anew, or none`);
  return null;
}
