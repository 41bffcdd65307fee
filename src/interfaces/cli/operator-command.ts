import { operate } from "../../app/operate.js";
import { Project } from "../../app/project.js";
import { type CliCommand, exitCodes, reasonOption, textOption } from "./command.js";

/** A command that a person gives a run, with a reason that goes into the operator's record. */
export function operatorCommandOf(type: "pause" | "finish" | "cancel", description: string, example: string): CliCommand {
  return {
    describe(program) {
      program
        .description(description)
        .argument("<run>", "name of the run")
        .requiredOption("--reason <text>", "why; recorded", reasonOption)
        .addHelpText("after", `\nExample:\n  ${example}`);
    },
    async run({ args, options, folder, terminal }) {
      const name = args[0] ?? "";
      const done = await operate(new Project(folder), name, { type, reason: textOption(options, "reason") ?? "" });
      terminal.say(`${name} is ${done.phase}${done.by === "owner" ? " (its process was told)" : ""}`);
      if (done.phase === "finishing" && done.by !== "owner")
        terminal.say(`No process works on it: \`trialist resume ${name}\` lets what is open come to its end, and ends the run.`);
      terminal.data({ run: name, ...done });
      return exitCodes.ok;
    },
  };
}
