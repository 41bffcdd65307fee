import { operate } from "../../../app/operate.js";
import { Project } from "../../../app/project.js";
import { type CliCommand, exitCodes } from "../command.js";
import { UsageError } from "../usage-error.js";

/** A word of the operator to the researchers of a run. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Tells the researchers of a run something: they see it from the next question on. It is recorded with the operator's acts.",
      )
      .argument("<run>", "name of the run")
      .argument("<text>", "what they are to know")
      .addHelpText("after", "\nExample:\n  trialist note night 'stay with trees: the deployment has no GPU'");
  },
  async run({ args, folder, terminal }) {
    const [name = "", text = ""] = args;
    if (text.trim() === "") throw new UsageError("note expects what the researchers are to know, as its second word; nothing was given");
    const done = await operate(new Project(folder), name, { type: "note", reason: text });
    terminal.say(`noted; researchers of ${name} see it from the next question on`);
    terminal.data({ run: name, ...done });
    return exitCodes.ok;
  },
};
