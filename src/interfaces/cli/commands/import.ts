import { resolve } from "node:path";
import { Project } from "../../../app/project.js";
import { importRun } from "../../../app/transfer.js";
import { type CliCommand, exitCodes } from "../command.js";

/** Reads a run from JSON Lines. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Reads a run that `trialist export` wrote, checking every record on the way.")
      .argument("<file>", "JSON Lines")
      .requiredOption("--name <name>", "name of the run here")
      .addHelpText("after", "\nExample:\n  trialist import night.jsonl --name night-of-anna");
  },
  async run({ args, options, folder, terminal }) {
    const name = String(options.name);
    const report = await importRun(new Project(folder), resolve(folder, args[0] ?? ""), name);
    terminal.say(`${name}: ${report.events} events`);
    terminal.data(report);
    return exitCodes.ok;
  },
};
