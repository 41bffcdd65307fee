import { type BenchResult, figure, ms } from "../result.js";
import { circumstances, peerHeading } from "../results-file.js";
import type { BareStarts } from "./bare-starts.js";
import { type Row, ratioOf } from "./comparison.js";
import { aidemlVersion } from "./install.js";
import type { Share } from "./steps.js";
import { researcher } from "./trialist-side.js";

/** Own time and bytes, side by side. */
export function ownTable(rows: readonly Row[]): string {
  const lines = rows.map((row) => {
    const { step, trialist, aideml } = row;
    const cells = [ms(trialist.ownMs), ms(aideml.ownMs), figure(ratioOf(row)), kib(trialist.bytes), kib(aideml.bytes)];
    return `| ${step} | ${cells.join(" | ")} |`;
  });
  return [
    "| step | own time, trialist | aideml | ratio | written per step, trialist | aideml |",
    "|---|---|---|---|---|---|",
    ...lines,
  ].join("\n");
}

/** What was counted apart. */
export function apartTable(rows: readonly Row[]): string {
  const cells = ({ scriptMs, startMs, serverMs, promptBytes }: Share): string =>
    `${ms(scriptMs)} | ${ms(startMs)} | ${ms(serverMs)} | ${kib(promptBytes)}`;
  const lines = rows.flatMap(({ step, trialist, aideml }) => [
    `| ${step} | trialist | ${cells(trialist)} |`,
    `| ${step} | aideml | ${cells(aideml)} |`,
  ]);
  return ["| step | of | script | start | model server | longest prompt |", "|---|---|---|---|---|---|", ...lines].join("\n");
}

export function barLine(row: BenchResult): string {
  const verdict = row.met ? "met" : "**not met**";
  return `- ${row.name}: ${figure(row.value)} ${row.unit} (bar ${row.bar}, ${verdict}); trialist ${row.ours}, against ${row.limit}; ${row.note}`;
}

/** The part of bench/RESULTS.md about this comparison. */
export function section(rows: readonly Row[], results: readonly BenchResult[], starts: BareStarts, command: string): string {
  return `${peerHeading}

Own time of one step of trialist beside that of aideml ${aidemlVersion}: a language model that answers in 0 ms, a script that prints
a number, one run of each, one after the other. \`npm run bench:aideml\` installs aideml into trialist's cache folder the first time.
Of trialist's candidates, ${researcher.name} is asked.

${circumstances(command)}

${ownTable(rows)}

${results.map(barLine).join("\n")}

Times are medians over the ${"20"} steps around each step. Own time is the wall time of a step, from the end of the one before to its
own, less what is counted apart:

${apartTable(rows)}

${apart(starts)}

Both programs get the same scripts, plans of one short sentence and reviews of one: aideml puts all of them into every prompt, so
longer ones would cost it more. Its loop is that of \`aide.Experiment.run\`, with its saving after every step; the live tree that its
command draws and its final report are left out. Bytes written are those that the kernel counts towards a disk for the program and
its children, in whole pages.
`;
}

function apart(starts: BareStarts): string {
  const answer = researcher.isSandboxed
    ? ` The start column of trialist is its researcher's answer, a command in the sandbox: ${ms(starts.ofAnswer)}, measured with bubblewrap alone; a model needs none.`
    : "";
  return `- trialist: both of its stages (the script, and the evaluator that aideml has not), each from telling its process to start until
  its end, as the ledger has them, so their sandboxes' starts are within; bubblewrap alone takes ${ms(starts.ofNothing)} for \`true\` here.${answer}
- aideml: the script as its journal has it; the fork of the script's process until it is ready, and the end of the one before. It has
  no sandbox.
- The model server: from the head of a question to the last byte of its answer, in the server. aideml asks twice a step.`;
}

function kib(bytes: number): string {
  return `${figure(bytes / 1024)} KiB`;
}
