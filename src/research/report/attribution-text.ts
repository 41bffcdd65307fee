import type { AttributedChange, Attribution, ChangeClass, Gain, SmallestSummary } from "../attribution/document.js";
import { markdown, markdownCode, oneLine } from "./hostile-text.js";
import { grid } from "./markdown-grid.js";
import { coverage, plural, range, signed, significant } from "./numbers.js";
import { field, type Paint, plainPaint, table } from "./terminal.js";

const classOrder: readonly ChangeClass[] = ["real", "required", "harmful", "neutral", "undecided", "entangled", "absent"];

/** The answer in one line: how many changes of each class, and what became of the smallest recipe. */
export function attributionLine(attribution: Attribution): string {
  if (attribution.state === "failed") return `the attribution failed: ${oneLine(attribution.note, 200)}`;
  const measured = attribution.changes.filter((change) => change.class !== null);
  if (attribution.state === "measuring")
    return `${measured.length} of ${plural(attribution.changes.length, "change")} measured; \`trialist attribute ${attribution.run}\` goes on`;
  const parts = classOrder.flatMap((name) => {
    const members = attribution.changes.filter((change) => change.class === name);
    return members.length === 0 ? [] : [`${members.length} ${name} (${members.map(memberText).join(", ")})`];
  });
  return `of ${plural(attribution.changes.length, "change")} ${parts.join(", ")}; ${smallestText(attribution)}`;
}

function memberText({ change, gain }: AttributedChange): string {
  return gain === null ? change : `${change} ${signed(gain.value)}`;
}

/** What became of the smallest recipe, in words. */
function smallestText({ run, smallest }: Attribution): string {
  if (smallest.state === "none") return smallest.note;
  const without = `without ${smallest.leavesOut.join(", ")}`;
  if (smallest.state === "failed") return `${without} the recipe fails: ${oneLine(smallest.note, 200)}`;
  if (smallest.state !== "done") return `${without} it is not measured yet: \`trialist attribute ${run}\` goes on`;
  return `${without} it ${keepsText(smallest)} (${gainText(smallest.overWinner)} over the winner)`;
}

function keepsText({ keepsTheGain, isBaseline }: SmallestSummary): string {
  if (isBaseline) return "is the baseline itself";
  if (keepsTheGain === "yes") return "keeps the gain";
  return keepsTheGain === "no" ? "loses some of the gain" : "may or may not keep the gain";
}

function gainText(gain: Gain | null): string {
  if (gain === null) return "not measured";
  const bounds = gain.lower === null && gain.upper === null ? "" : `, ${range(gain.lower, gain.upper, signed)}`;
  return `${signed(gain.value)}${bounds}`;
}

/** Whether the smallest recipe is to be preferred to the winner: not worse by what counts, and better than the baseline. */
export function isSmallerRecipeBetter(attribution: Attribution | null): attribution is Attribution {
  const smallest = attribution?.smallest;
  return smallest?.run != null && smallest.keepsTheGain === "yes" && smallest.beatsTheBaseline === "yes" && !smallest.isBaseline;
}

const rowOf = (change: AttributedChange): string[] => [
  change.change,
  change.class ?? "not measured yet",
  change.gain === null ? "" : signed(change.gain.value),
  change.gain === null ? "" : range(change.gain.lower, change.gain.upper, signed),
  change.adjustedP === null ? "" : significant(change.adjustedP, 2),
];

function capitalized(text: string): string {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
}

/** For the terminal. */
export function attributionText(attribution: Attribution, paint: Paint = plainPaint): string {
  const line = (label: string, text: string): string[] => field(label, oneLine(text), (same) => same, paint.bold);
  const rows = attribution.changes.map((change) => [...rowOf(change), oneLine(change.words, 160)]);
  const [head = "", ...body] = table([["change", "is", "gain", "interval", "p", "hypothesis"], ...rows]);
  const notes = attribution.changes.filter(({ note }) => note !== "").map(({ change, note }) => `${change}: ${note}`);
  const groups = attribution.groups.map(
    ({ changes, gain, note }) => `${changes.join(" and ")} left out together: ${gain === null ? note || "not measured" : gainText(gain)}`,
  );
  const { smallest } = attribution;
  const apply = isSmallerRecipeBetter(attribution)
    ? [`\`trialist apply ${smallest.run}\` puts the smallest recipe into the working tree.`]
    : [];
  return `${[
    paint.bold(`${attribution.run}: what ${attribution.winner} owes its gain to`),
    ...line("Answer", capitalized(attributionLine(attribution))),
    "",
    paint.bold(head),
    ...body,
    "",
    ...[...notes, ...groups, ...otherWay(attribution)].flatMap((text, index) => line(index === 0 ? "Notes" : "", text)),
    ...line("Smallest", smallestDetail(attribution)),
    ...line("Read it so", howToRead(attribution)),
    ...apply,
  ].join("\n")}\n`;
}

/** Steps that all rewrote the same lines tell nothing apart. */
function otherWay({ run, by, changes }: Attribution): string[] {
  if (by === "hunk" || !changes.some((change) => change.class === "entangled")) return [];
  return [`\`trialist attribute ${run} --by hunk --name ${run}-hunks\` takes the whole difference apart by its hunks instead`];
}

function smallestDetail(attribution: Attribution): string {
  const { smallest } = attribution;
  if (smallest.state !== "done") return smallestText(attribution);
  const over = smallest.isBaseline ? "" : `; over the baseline ${gainText(smallest.overBaseline)}`;
  return `${smallestText(attribution)}${over}; its value ${significant(smallest.value)}`;
}

function howToRead({ pairs, level, margin, changes }: Attribution): string {
  return `gain of having a change: the winner over the winner without it, ${plural(pairs, "pair")} on fresh seeds, ${coverage(level)} intervals; neutral means within ${significant(margin, 3)} of nothing; real and harmful hold at ${significant(level, 3)} each for all ${plural(changes.length, "change")} together (p adjusted by Holm)`;
}

/** A section of `report.md`; empty where nothing was taken apart. */
export function attributionSection(attribution: Attribution | null | undefined): string {
  if (attribution == null) return "";
  const rows = attribution.changes.map((change) => [
    ...rowOf(change).map((cell) => markdown(cell)),
    change.paths.length === 0
      ? ""
      : `${change.paths
          .slice(0, 5)
          .map((path) => markdownCode(path, 100))
          .join(", ")}${change.paths.length > 5 ? ", …" : ""}`,
    markdown(change.words, 160),
    markdown(change.note, 200),
  ]);
  const groups = attribution.groups.map(
    ({ changes, gain, note }) =>
      `- ${changes.join(" and ")} left out together: ${gain === null ? markdown(note || "not measured", 200) : gainText(gain)}`,
  );
  const apply = isSmallerRecipeBetter(attribution) ? `\`trialist apply ${attribution.smallest.run}\` puts it into the working tree.` : "";
  return [
    `## What ${attribution.winner} owes its gain to`,
    `${markdown(capitalized(attributionLine(attribution)))}.`,
    grid(["change", "is", "gain of having it", "interval", "p", "files", "hypothesis", "note"], rows),
    [...groups, ...otherWay(attribution).map((text) => `- ${text}`)].join("\n"),
    `**Smallest recipe:** ${markdown(smallestDetail(attribution))}. ${apply}`,
    `How to read it: ${markdown(howToRead(attribution))}. Measured in the list run ${markdownCode(attribution.list)}.`,
  ]
    .filter((part) => part.trim() !== "")
    .join("\n\n");
}
