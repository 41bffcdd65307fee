import { resolve } from "node:path";
import { applyCandidate } from "../../../app/apply.js";
import { inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, exitCodes, textOption } from "../command.js";

/** Puts a candidate into the working tree. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Puts a trial's candidate into the working tree of its environment; never over uncommitted work.")
      .argument("<run>", "name of the run")
      .argument("[trial]", "id of a trial (default: the best)")
      .option("--to <folder>", "another folder to put the files into")
      .addHelpText("after", "\nExample:\n  trialist apply night\n  trialist apply night t7 --to ../copy");
  },
  async run({ args, options, folder, terminal }) {
    const [name = "", trial] = args;
    const inspected = inspectRun(new Project(folder), name);
    try {
      const to = textOption(options, "to");
      const applied = await applyCandidate(inspected, trial ?? null, to === undefined ? null : resolve(folder, to));
      const changes = applied.written.length + applied.removed.length;
      terminal.say(
        changes === 0
          ? `${applied.trial} is the baseline: nothing to change.`
          : printable(
              `${applied.trial} is in ${applied.folder}: ${[...applied.written, ...applied.removed.map((path) => `${path} (removed)`)].join(", ")}`,
            ),
      );
      terminal.data({ run: name, ...applied });
      return exitCodes.ok;
    } finally {
      inspected.close();
    }
  },
};
