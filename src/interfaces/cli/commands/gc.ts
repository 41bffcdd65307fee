import { createInterface } from "node:readline/promises";
import { openHost } from "../../../app/environments.js";
import { collectGarbage, type GarbageKind, type GarbageReport } from "../../../app/gc.js";
import { Project } from "../../../app/project.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, exitCodes, numberOption } from "../command.js";
import { durationOption } from "../duration.js";
import type { Terminal } from "../terminal.js";

const defaultOlderThanMs = 30 * 86_400_000;

const names: Readonly<Record<GarbageKind, string>> = {
  outputs: "kept outputs of trials that are not the best (keep_outputs: best)",
  blobs: "files of blobs that no run of this project names",
  folders: "working folders of runs that are over",
  leftovers: "what processes that died left behind",
  cache: "frozen environments, runtimes and data that nothing used for long",
};

/** Makes room. */
export const command: CliCommand = {
  describe(program) {
    program
      .description("Says what nothing needs any more, and removes it when told to. Nothing that a ledger needs is removed.")
      .option("--dry-run", "only say it, and ask nothing", false)
      .option("--yes", "remove it without asking", false)
      .option("--cache", "also what the cache, which projects share, holds and nothing used for long", false)
      .option("--older-than <duration>", "with --cache: for how long (default: 30d)", durationOption("--older-than"))
      .addHelpText("after", "\nExample:\n  trialist gc --dry-run\n  trialist gc --yes --cache --older-than 60d");
  },
  async run({ options, folder, terminal }) {
    const [project, host] = [new Project(folder), await openHost()];
    const cacheOlderThanMs = options.cache === true ? (numberOption(options, "olderThan") ?? defaultOlderThanMs) : null;
    const look = (remove: boolean): Promise<GarbageReport> => collectGarbage(project, host, { remove, cacheOlderThanMs });
    let report = await look(options.yes === true && options.dryRun !== true);
    say(terminal, report);
    if (!report.removed && options.dryRun !== true && found(report) && (await isWanted(terminal))) {
      report = await look(true);
      say(terminal, report);
    }
    if (!report.removed && found(report)) terminal.say("Nothing was removed; `trialist gc --yes` removes it.");
    terminal.data({ removed: report.removed, kinds: report.kinds, bytes: total(report), notes: report.notes });
    return exitCodes.ok;
  },
};

function say(terminal: Terminal, report: GarbageReport): void {
  for (const { kind, items, bytes } of report.kinds) {
    if (items > 0) terminal.say(`${inWords(bytes).padStart(9)}  ${String(items).padStart(6)}  ${names[kind]}`);
  }
  for (const note of report.notes) terminal.note(printable(note));
  const sum = inWords(total(report));
  terminal.say(!found(report) ? "There is nothing to remove." : report.removed ? `${sum} removed.` : `${sum} could be removed.`);
}

function found(report: GarbageReport): boolean {
  return report.kinds.some((each) => each.items > 0);
}

function total(report: GarbageReport): number {
  return report.kinds.reduce((sum, each) => sum + each.bytes, 0);
}

function inWords(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Number((bytes / 2 ** (10 * power)).toPrecision(3))} ${units[power]}`;
}

/** Asked where a person sits at both ends; everywhere else the answer is no. */
async function isWanted(terminal: Terminal): Promise<boolean> {
  if (!terminal.isInteractive || terminal.json || process.stdin.isTTY !== true) return false;
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await lines.question("Remove it? [y/N] ")).trim());
  } finally {
    lines.close();
  }
}
