import { Project } from "../../../app/project.js";
import { type CliCommand, exitCodes } from "../command.js";
import { finalAnswer } from "../final-answer.js";

/** The ten-second answer of a run. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("What won, by how much, how sure, what it cost, what failed most. Works beside a running process.")
      .argument("<run>", "name of the run")
      .addHelpText("after", "\nExample:\n  trialist status night --json");
  },
  async run({ args, folder, terminal }) {
    await finalAnswer(new Project(folder), args[0] ?? "", terminal);
    return exitCodes.ok;
  },
};
