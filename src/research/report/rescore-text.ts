import type { Packet } from "../../core/protocol/packet.js";
import type { Verdict } from "../../core/protocol/verdict.js";
import type { Reproduction, SameSeeds } from "../../core/statistics/reproduction.js";
import { oneLine } from "./hostile-text.js";
import { coverage, plural, range, signed, significant } from "./numbers.js";
import { resultWords } from "./opening.js";
import { field, type Paint, plainPaint } from "./terminal.js";

/** What a rescore has to say, apart from the files that it was made of. */
export interface RescoreFacts {
  readonly run: string;
  readonly trial: string;
  readonly result: Reproduction;
  readonly reason: string;
  readonly recorded: Pick<Packet, "verdict" | "comparator" | "gainOverBaseline">;
  readonly here: { readonly recordedSeeds: Verdict | null; readonly freshSeeds: Verdict | null; readonly overBaseline: Verdict | null };
  readonly sameSeeds: SameSeeds;
  readonly differences: readonly string[];
}

const words: Readonly<Record<Reproduction, string>> = {
  reproduced: "REPRODUCED",
  not_reproduced: "NOT REPRODUCED",
  undecided: "UNDECIDED",
};

/** The text of `trialist rescore`. */
export function rescoreText(facts: RescoreFacts, paint: Paint = plainPaint): string {
  const line = (label: string, text: string): string[] => field(label, oneLine(text), (same) => same, paint.bold);
  const { recorded, here, sameSeeds } = facts;
  const tone = facts.result === "reproduced" ? paint.good : paint.bad;
  const third = recorded.comparator === "t0" ? [] : line("Baseline", verdictText(here.overBaseline));
  const [first = "", ...rest] = facts.differences;
  return `${[
    ...field(oneLine(facts.trial), `${words[facts.result]}: ${oneLine(facts.reason)}`, tone, paint.bold),
    ...line(
      "There",
      `${verdictText(recorded.verdict)}, over ${recorded.comparator}; over the baseline ${signed(recorded.gainOverBaseline)}`,
    ),
    ...line("Its seeds", `${verdictText(here.recordedSeeds)}; ${sameText(sameSeeds)}`),
    ...line("Fresh", verdictText(here.freshSeeds)),
    ...third,
    ...line("Differs", first === "" ? "nothing that is recorded" : first),
    ...rest.flatMap((difference) => line("", difference)),
  ].join("\n")}\n`;
}

function verdictText(verdict: Verdict | null): string {
  if (verdict === null) return "no verdict";
  const { result, gain, lower, upper, level, seeds, records } = verdict;
  const bounds = lower === null && upper === null ? "no interval" : `${coverage(level)} interval ${range(lower, upper, signed)}`;
  return `${resultWords[result]}: gain ${signed(gain)}, ${bounds} (${plural(seeds, "seed")}, ${plural(records, "record")})`;
}

function sameText({ compared, equal, largestDifference }: SameSeeds): string {
  if (compared === 0) return "no value can be compared to the digit";
  const largest = equal === compared ? "" : `, the largest difference is ${significant(largestDifference, 3)}`;
  return `${equal} of ${compared} values are the same to the digit${largest}`;
}
