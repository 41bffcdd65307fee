import { join, resolve } from "node:path";
import { attributionBeside } from "../../../app/attribution.js";
import { inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { writeFiles } from "../../../app/written-files.js";
import { bestJson, leaderboardMarkdown, resultsTsv, treeTsv } from "../../../research/report/exports.js";
import { reportMarkdown } from "../../../research/report/markdown.js";
import { readTimeline } from "../../../research/report/timeline.js";
import { type CliCommand, exitCodes, textOption } from "../command.js";

/** Writes the report and the exports. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Writes report.md, results.tsv, tree.tsv, best.json and LEADERBOARD.md, and prints the report.")
      .argument("<run>", "name of the run")
      .option("--out <folder>", "where to write them (default: the run's folder, below report/)")
      .addHelpText("after", "\nExample:\n  trialist report night --out night-report");
  },
  async run({ args, options, folder, terminal }) {
    const name = args[0] ?? "";
    const project = new Project(folder);
    const inspected = inspectRun(project, name);
    try {
      const { state, ledger } = inspected;
      const out = resolve(folder, textOption(options, "out") ?? join(inspected.folder, "report"));
      const attribution = await attributionBeside(project, name, (text) => terminal.note(text));
      const evidence = { blob: (digest: string) => ledger.blob(digest), timeline: readTimeline(ledger.read()), attribution };
      const now = Date.now();
      const files: Record<string, string> = {
        "report.md": reportMarkdown(state, now, evidence),
        "results.tsv": resultsTsv(state, evidence),
        "tree.tsv": treeTsv(state, evidence),
        "best.json": bestJson(state, now, evidence),
        "LEADERBOARD.md": leaderboardMarkdown(state, now, evidence),
      };
      await writeFiles(out, files);
      terminal.say(files["report.md"] ?? "");
      terminal.note(`written: ${out}/{${Object.keys(files).join(",")}}`);
      terminal.data({ run: name, folder: out, files: Object.keys(files), attribution });
      return exitCodes.ok;
    } finally {
      inspected.close();
    }
  },
};
