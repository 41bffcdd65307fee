import { Project } from "../../../app/project.js";
import { type VerifiedRun, verifyRun } from "../../../app/verify.js";
import { TrialistError } from "../../../core/protocol/errors.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, exitCodes } from "../command.js";
import { UsageError } from "../usage-error.js";

/** Recomputes everything that a run recorded. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Recomputes a run's chain, blobs, fold and verdicts, and names the first bad record.")
      .argument("[run]", "name of the run")
      .option("--all", "every run of this project", false)
      .addHelpText("after", "\nExample:\n  trialist verify night\n  trialist verify --all");
  },
  async run({ args, options, folder, terminal }) {
    const project = new Project(folder);
    const isAll = options.all === true;
    const names = isAll ? project.runNames() : args.slice(0, 1);
    if (names.length === 0) throw new UsageError("verify expects the name of a run, or --all with at least one run in this project");
    const reports = [];
    for (const name of names) {
      const report = isAll ? await verifyRun(project, name).catch(unverifiable) : await verifyRun(project, name);
      reports.push({ run: name, ...report });
      terminal.say(
        report.ok
          ? `${name}: ${report.events} events and ${report.blobs} blobs check out; chain ${report.chain.slice(0, 16)}…`
          : printable(`${name}: ${report.problem}`),
      );
    }
    terminal.data(reports);
    return reports.every((report) => report.ok) ? exitCodes.ok : exitCodes.corrupt;
  },
};

/** One run that cannot even be opened leaves none of the others unverified. */
function unverifiable(error: unknown): VerifiedRun {
  if (!(error instanceof TrialistError)) throw error;
  return { ok: false, events: 0, blobs: 0, chain: "", problem: error.message };
}
