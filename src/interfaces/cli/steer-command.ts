import { operate } from "../../app/operate.js";
import { Project } from "../../app/project.js";
import { type CliCommand, exitCodes, reasonOption, textOption } from "./command.js";

const became = { hold: "held", pin: "pinned", release: "free" } as const;

/** A word of the operator on one trial. */
export function steerCommandOf(type: keyof typeof became, description: string, example: string): CliCommand {
  return {
    describe(program) {
      program
        .description(description)
        .argument("<run>", "name of the run")
        .argument("<trial>", "id of the trial, such as t7")
        .requiredOption("--reason <text>", "why; recorded", reasonOption)
        .addHelpText("after", `\nExample:\n  ${example}`);
    },
    async run({ args, options, folder, terminal }) {
      const [name = "", trial = ""] = args;
      const done = await operate(new Project(folder), name, { type, trial, reason: textOption(options, "reason") ?? "" });
      terminal.say(`${trial} is ${became[type]}.`);
      terminal.data({ run: name, trial, steer: became[type], ...done });
      return exitCodes.ok;
    },
  };
}
