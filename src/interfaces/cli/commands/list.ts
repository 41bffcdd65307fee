import { inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { summarize } from "../../../research/report/summary.js";
import { type CliCommand, exitCodes } from "../command.js";

/** Lists a project's runs. */
export const command: CliCommand = {
  describe(program) {
    program.description("Lists this project's runs, one line each.").addHelpText("after", "\nExample:\n  trialist list");
  },
  async run({ folder, terminal }) {
    const project = new Project(folder);
    const names = project.runNames();
    if (names.length === 0) terminal.say("There is no run here yet. `trialist run ENVIRONMENT` starts one.");
    const rows = names.map((name) => {
      const inspected = inspectRun(project, name);
      try {
        const summary = summarize(inspected.state, Date.now(), { blob: (digest) => inspected.ledger.blob(digest) });
        const best = summary.best === null ? "no result yet" : `best ${summary.best.trial} ${Number(summary.best.value.toPrecision(6))}`;
        terminal.say(
          `${name.padEnd(24)} ${summary.state.padEnd(12)} ${best}${inspected.owner === null ? "" : `  (process ${inspected.owner.pid ?? "unknown"} works on it)`}`,
        );
        return { run: name, state: summary.state, best: summary.best, trials: summary.trials, owner: inspected.owner };
      } finally {
        inspected.close();
      }
    });
    terminal.data(rows);
    return exitCodes.ok;
  },
};
