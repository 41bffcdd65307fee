import { resolve } from "node:path";
import { Project } from "../../../app/project.js";
import { exportRun } from "../../../app/transfer.js";
import { type CliCommand, exitCodes, textOption } from "../command.js";

/** Writes a run as JSON Lines. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Writes a run's ledger as JSON Lines: events, then the blobs that they name. Held-out looks are not in it.")
      .argument("<run>", "name of the run")
      .option("--out <file>", "a new file (default: RUN.jsonl)")
      .option("--no-blobs", "events alone")
      .addHelpText("after", "\nExample:\n  trialist export night --out night.jsonl");
  },
  async run({ args, options, folder, terminal }) {
    const name = args[0] ?? "";
    const file = resolve(folder, textOption(options, "out") ?? `${name}.jsonl`);
    const report = await exportRun(new Project(folder), name, file, options.blobs !== false);
    terminal.say(`${file}: ${report.events} events, ${report.blobs} blobs, ${report.bytes} bytes`);
    terminal.data({ run: name, file, ...report });
    return exitCodes.ok;
  },
};
