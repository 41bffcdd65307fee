import { inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { showRun, showTrial } from "../../../research/report/show.js";
import { type CliCommand, exitCodes } from "../command.js";

/** A run's trials, or one of them in full. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Shows a run's trials, or one trial in full: hypothesis, measurements, verdicts, the output of what failed.")
      .argument("<run>", "name of the run")
      .argument("[trial]", "id of a trial, such as t7")
      .addHelpText("after", "\nExample:\n  trialist show night t7");
  },
  async run({ args, folder, terminal }) {
    const [name = "", trial] = args;
    const inspected = inspectRun(new Project(folder), name);
    try {
      const { state, ledger } = inspected;
      terminal.say(
        trial === undefined
          ? showRun(state, terminal.paint)
          : showTrial(state, trial, { blob: (digest) => ledger.blob(digest) }, terminal.paint),
      );
      terminal.data(trial === undefined ? Object.values(state.trials) : state.trials[trial]);
      return exitCodes.ok;
    } finally {
      inspected.close();
    }
  },
};
