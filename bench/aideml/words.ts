import { type BenchResult, figure, ms } from "../result.js";
import { circumstances, peerHeading } from "../results-file.js";
import type { BareStarts } from "./bare-starts.js";
import { driftOf, type Row, ratioOf } from "./comparison.js";
import { aidemlVersion } from "./install.js";
import { type Share, windowSteps } from "./steps.js";
import { researcher } from "./trialist-side.js";

/** Own time and bytes, side by side. */
export function ownTable(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const { step, trialist, aideml, library } = row;
    const cells = [ms(trialist.ownMs), ms(aideml.ownMs), figure(ratioOf(row)), ms(library.ownMs), kib(trialist.bytes), kib(aideml.bytes)];
    return `| ${step} | ${cells.join(" | ")} |`;
  });
  return [
    "| step | own time, trialist | `aide` | ratio | `aide.Experiment` | written a step, trialist | `aide` |",
    "|---|---|---|---|---|---|---|",
    ...lines,
  ].join("\n");
}

/** What was counted apart. */
export function apartTable(rows: readonly Row[]): string {
  const cells = ({ wallMs, scriptMs, startMs, serverMs, promptBytes }: Share): string =>
    [wallMs, scriptMs, startMs, serverMs]
      .map(ms)
      .concat(promptBytes === 0 ? "none" : kib(promptBytes))
      .join(" | ");
  const lines = rows.flatMap(({ step, trialist, aideml }) => [
    `| ${step} | trialist | ${cells(trialist)} |`,
    `| ${step} | \`aide\` | ${cells(aideml)} |`,
  ]);
  return ["| step | of | whole step | script | start | model server | longest prompt |", "|---|---|---|---|---|---|---|", ...lines].join(
    "\n",
  );
}

export function barLine(row: BenchResult): string {
  const verdict = row.met ? "met" : "**not met**";
  return `- ${row.name}: ${figure(row.value)} ${row.unit} (bar ${row.bar}, ${verdict}); trialist ${row.ours}, against ${row.limit}; ${row.note}`;
}

/** More than this, and windows of one run, let alone of two programs, cannot be compared. */
const mostDrift = 1.2;

export function quietness(rows: readonly Row[]): string {
  const drift = driftOf(rows);
  const found = `trialist's stages, the same work in every step, took ${figure(drift)} × as long in their slowest window as in their fastest`;
  if (drift <= mostDrift)
    return `While trialist ran, the machine was quiet: ${found}. For the time of aideml nothing says so but the load.`;
  return `**The machine was not quiet, so no bar is settled by this run**: ${found}; ${mostDrift} × would be quiet.`;
}

/** The part of bench/RESULTS.md about this comparison. */
export function section(rows: readonly Row[], results: readonly BenchResult[], starts: BareStarts, command: string): string {
  return `${peerHeading}

Own time of a step of trialist beside that of aideml ${aidemlVersion}: a model that answers at once, a script that prints a number, one run of
each, one after the other, both as their commands without a terminal. trialist's candidates come from ${researcher.name}.
\`npm run bench:aideml\` measures it, \`-- --write\` writes this section, \`-- --steps 100\` makes it shorter; the first time it
installs aideml into trialist's cache folder.

${circumstances(command)}

${ownTable(rows)}

${results.map(barLine).join("\n")}

${quietness(rows)}

Times are medians over ${windowSteps} steps around each. Own time is the whole step, from the end of the one before to its own, less
what is counted apart:

${apartTable(rows)}

${apart(starts)}

Both get the same scripts, plans of one short sentence and reviews of one. aideml puts every plan and review into every prompt,
so longer ones would cost it more. \`aide.Experiment\` is aideml's loop as a library: its command makes a tree of all solutions after
every step besides. Not in either: drawing that tree, which \`aide\` does on a terminal alone, and its final report. Written is what
the kernel counts towards a disk for a program and its children, in whole pages, a page again whenever it is written again.
`;
}

function apart({ ofNothing, ofAnswer }: BareStarts): string {
  const answer = researcher.isSandboxed
    ? ` Its own time holds the
  researcher's answer, a command in the sandbox, for which bubblewrap alone takes ${ms(ofAnswer)}; a model needs none.`
    : "";
  return `- trialist: its two stages, the script and an evaluator, which aideml has not. Each counts from telling its process to start
  until that has ended, as the ledger has it, sandbox and interpreter included; bubblewrap alone takes ${ms(ofNothing)} here to run
  \`true\`.${answer}
- aideml: the script as its journal has it, in a fork without a sandbox; as its start, that fork until it is ready and the end of
  the one before.
- The model server: from the head of a question to the last byte of its answer. aideml asks twice a step.`;
}

function kib(bytes: number): string {
  return `${figure(bytes / 1024)} KiB`;
}
