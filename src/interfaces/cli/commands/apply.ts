import { resolve } from "node:path";
import { applyCandidate } from "../../../app/apply.js";
import { branchCandidate } from "../../../app/apply-branch.js";
import { type InspectedRun, inspectRun } from "../../../app/inspect.js";
import { Project } from "../../../app/project.js";
import { printable } from "../../../research/report/hostile-text.js";
import { type CliCommand, exitCodes, textOption } from "../command.js";
import type { Terminal } from "../terminal.js";
import { UsageError } from "../usage-error.js";

/** Puts a candidate into the working tree, or on a new branch. */
export const command: CliCommand = {
  describe(program) {
    program
      .description(
        "Puts a trial's candidate into the working tree of its environment, never over uncommitted work; or, with --branch, on a new branch of its git repository, with the evidence in the commit's message and nothing else touched.",
      )
      .argument("<run>", "name of the run")
      .argument("[trial]", "id of a trial (default: the best)")
      .option("--to <folder>", "another folder to put the files into, or in whose repository to make the branch")
      .option("--branch <name>", "make a commit on a new branch instead; working tree, index and HEAD stay as they are")
      .option("--onto <commit>", "with --branch: what to build on (default: HEAD)")
      .addHelpText(
        "after",
        "\nExample:\n  trialist apply night\n  trialist apply night t7 --to ../copy\n  trialist apply night --branch trialist/night",
      );
  },
  async run({ args, options, folder, terminal }) {
    const [name = "", trial] = args;
    const [branch, onto, to] = [textOption(options, "branch"), textOption(options, "onto"), textOption(options, "to")];
    if (onto !== undefined && branch === undefined) throw new UsageError("--onto goes with --branch");
    const inspected = inspectRun(new Project(folder), name);
    const place = to === undefined ? null : resolve(folder, to);
    try {
      if (branch === undefined) await intoWorkingTree(inspected, trial ?? null, place, terminal);
      else await ontoBranch(inspected, trial ?? null, place, { branch, onto: onto ?? null }, terminal);
      return exitCodes.ok;
    } finally {
      inspected.close();
    }
  },
};

async function intoWorkingTree(inspected: InspectedRun, trial: string | null, to: string | null, terminal: Terminal): Promise<void> {
  const applied = await applyCandidate(inspected, trial, to);
  const changes = applied.written.length + applied.removed.length;
  terminal.say(
    changes === 0
      ? `${applied.trial} is what lies there already: nothing to change.`
      : printable(`${applied.trial} is in ${applied.folder}: ${namesOf(applied)}`),
  );
  terminal.data({ run: inspected.name, ...applied });
}

async function ontoBranch(
  inspected: InspectedRun,
  trial: string | null,
  to: string | null,
  where: { readonly branch: string; readonly onto: string | null },
  terminal: Terminal,
): Promise<void> {
  const made = await branchCandidate(inspected, trial, to, where);
  terminal.say(printable(`${made.trial} is on the new branch ${made.branch}: ${namesOf(made)}`));
  terminal.say(`commit ${made.commit}, on top of ${made.parent}`);
  terminal.say("Working tree, index and current branch are as they were; work that is not committed is not part of it.");
  terminal.data({ run: inspected.name, ...made });
}

function namesOf({ written, removed }: { readonly written: readonly string[]; readonly removed: readonly string[] }): string {
  return [...written, ...removed.map((path) => `${path} (removed)`)].join(", ");
}
