import { openHost } from "../../../app/environments.js";
import { extendRun } from "../../../app/extend-run.js";
import { Project } from "../../../app/project.js";
import { type CliCommand, reasonOption } from "../command.js";
import { afterHeldoutLook, budgetChange, describeContinuationOptions } from "../continuation-options.js";
import { goOn } from "../go-on.js";

const example = `
Caps are totals of the whole run, what is spent included; +N adds N to what is spent, none lifts a cap. What is not named
stays as it is. --patience counts from here on.

Example:
  trialist extend night --max-trials +20 --reason 'the last keeps came late'
  trialist extend night --max-time +2h --target none --reason 'the target was too easy' --detach`;

/** Goes on with a finished run. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Goes on with a finished run under larger caps: calibration, trials and knowledge stay what they are.")
      .argument("<run>", "name of the run")
      .requiredOption("--reason <text>", "why; recorded", reasonOption);
    describeContinuationOptions(program);
    program.addHelpText("after", example);
  },
  async run(input) {
    const { options, folder, terminal } = input;
    const name = input.args[0] ?? "";
    const [project, host] = [new Project(folder), await openHost()];
    await extendRun(project, host, name, {
      ...budgetChange(input),
      reason: String(options.reason),
      frozen: options.frozen === true,
      afterHeldoutLook: afterHeldoutLook(input),
    });
    return await goOn(project, host, name, options.detach === true, terminal);
  },
};
