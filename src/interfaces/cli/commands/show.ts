import { inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { isOver } from "../../../core/harness/due.js";
import { type RunState, type Trial, trialOf } from "../../../core/harness/state.js";
import { showRun, showTrial } from "../../../research/report/show.js";
import { callRecord, isCallOrSession, showCall } from "../../../research/report/show-call.js";
import { readTimeline } from "../../../research/report/timeline.js";
import { type CliCommand, exitCodes } from "../command.js";

/** A run's trials, or one of them in full. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Shows a run's trials; one trial in full: hypothesis, measurements, verdicts, the output of what failed; or a role call or session: exactly what was asked and answered, and what it cost.",
      )
      .argument("<run>", "name of the run")
      .argument("[id]", "a trial such as t7, a role call such as c5, a session such as s1")
      .addHelpText("after", "\nExample:\n  trialist show night t7\n  trialist show night c5");
  },
  async run({ args, folder, terminal }) {
    const [name = "", trial] = args;
    const inspected = inspectRun(new Project(folder), name);
    try {
      const { state, ledger } = inspected;
      const blob = (digest: string): Uint8Array => ledger.blob(digest);
      if (trial !== undefined && isCallOrSession(trial)) {
        terminal.say(showCall(ledger.read(), trial, blob));
        if (terminal.json) terminal.data(callRecord(ledger.read(), trial, blob));
        return exitCodes.ok;
      }
      const shown = (one: Trial): unknown => ({ ...withoutSeeds(one, state.phase), steer: state.steers[one.id]?.steer ?? null });
      terminal.say(
        trial === undefined
          ? showRun(state, terminal.paint)
          : showTrial(state, trial, { blob, timeline: readTimeline(ledger.read()) }, terminal.paint),
      );
      terminal.data(trial === undefined ? Object.values(state.trials).map(shown) : shown(trialOf(state, trial)));
      return exitCodes.ok;
    } finally {
      inspected.close();
    }
  },
};

/** While a run goes on, its confirmation seeds are nobody's to pass on to a researcher. */
function withoutSeeds(trial: Trial, phase: RunState["phase"]): object {
  if (isOver(phase)) return trial;
  return { ...trial, results: trial.results.map(({ seed: _hidden, ...result }) => result) };
}
