import { inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { type RunState, type Trial, trialOf } from "../../../core/harness/state.js";
import { showRun, showTrial } from "../../../research/report/show.js";
import { readTimeline } from "../../../research/report/timeline.js";
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
      const shown = (one: Trial): unknown => withoutSeeds(one, state.phase);
      terminal.say(
        trial === undefined
          ? showRun(state, terminal.paint)
          : showTrial(state, trial, { blob: (digest) => ledger.blob(digest), timeline: readTimeline(ledger.read()) }, terminal.paint),
      );
      terminal.data(trial === undefined ? Object.values(state.trials).map(shown) : shown(trialOf(state, trial)));
      return exitCodes.ok;
    } finally {
      inspected.close();
    }
  },
};

/** While a run goes on, its confirmation seeds are nobody's to pass on to a researcher. */
function withoutSeeds(trial: Trial, phase: RunState["phase"]): unknown {
  if (phase === "finished" || phase === "cancelled") return trial;
  return { ...trial, results: trial.results.map(({ seed: _hidden, ...result }) => result) };
}
