import { inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { TrialistError } from "../../../core/protocol/errors.js";
import { printable } from "../../../research/report/hostile-text.js";
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
    const rows = names.map((name) => rowOf(project, name));
    for (const row of rows) terminal.say(row.line);
    terminal.data(rows.map((row) => row.document));
    return rows.some((row) => row.isUnreadable) ? exitCodes.corrupt : exitCodes.ok;
  },
};

interface Row {
  readonly line: string;
  readonly document: unknown;
  readonly isUnreadable: boolean;
}

/** One run that cannot be read hides none of the others. */
function rowOf(project: Project, name: string): Row {
  try {
    return readableRow(project, name);
  } catch (error) {
    if (!(error instanceof TrialistError)) throw error;
    return {
      line: printable(`${name.padEnd(24)} ${"unreadable".padEnd(12)} ${error.message}`),
      document: { run: name, state: "unreadable", best: null, trials: {}, owner: null },
      isUnreadable: true,
    };
  }
}

function readableRow(project: Project, name: string): Row {
  const { state, ledger, owner, close } = inspectRun(project, name);
  try {
    const summary = summarize(state, Date.now(), { blob: (digest) => ledger.blob(digest) });
    const best = summary.best === null ? "no result yet" : `best ${summary.best.trial} ${Number(summary.best.value.toPrecision(6))}`;
    const worker = owner === null ? "" : `  (process ${owner.pid ?? "unknown"} works on it)`;
    return {
      line: `${name.padEnd(24)} ${summary.state.padEnd(12)} ${best}${worker}`,
      document: { run: name, state: summary.state, best: summary.best, trials: summary.trials, owner },
      isUnreadable: false,
    };
  } finally {
    close();
  }
}
