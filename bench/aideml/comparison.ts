import { type BenchResult, figure, judged, ms } from "../result.js";
import { type Share, type Side, shareAt, windowAround } from "./steps.js";

const bars = { early: 0.5, late: 0.1, growth: 1.2 };
const wantedSteps = [20, 100, 200, 500];

/** Both programs around one step. */
export interface Row {
  readonly step: number;
  readonly trialist: Share;
  /** The command `aide`, as users start it; it is judged against. */
  readonly aideml: Share;
  /** The same without the command's tree. */
  readonly library: Share;
}

export interface Sides {
  readonly trialist: Side;
  readonly aideml: Side;
  readonly library: Side;
}

/** The steps of the table that runs of this length have. */
export function rowsOf({ trialist, aideml, library }: Sides, total: number): Row[] {
  return wantedSteps
    .filter((step) => step <= total)
    .map((step) => ({ step, trialist: shareAt(trialist, step), aideml: shareAt(aideml, step), library: shareAt(library, step) }));
}

/** Step 20 against half of aideml's, step 500 against a tenth, and step 500 against step 20. A shorter run has fewer bars. */
export function barsOf(rows: readonly Row[], total: number): BenchResult[] {
  const [early, late] = [20, 500].map((step) => rows.find((row) => row.step === step));
  return [
    ...(early === undefined ? [] : [against(early, bars.early, total)]),
    ...(late === undefined ? [] : [against(late, bars.late, total)]),
    ...(early === undefined || late === undefined ? [] : [growth(early, late)]),
  ];
}

/**
 * How far the machine drifted while trialist ran: its stages do the same work in every step, so their slowest window over
 * their fastest is 1 on a quiet machine.
 */
export function driftOf(rows: readonly Row[]): number {
  const stages = rows.map((row) => row.trialist.scriptMs);
  return Math.max(...stages) / Math.min(...stages);
}

export function ratioOf({ trialist, aideml }: Row): number {
  return trialist.ownMs / aideml.ownMs;
}

function against(row: Row, bar: number, total: number): BenchResult {
  const { first, last } = windowAround(row.step, total);
  const { trialist, aideml, library } = row;
  const withStart = figure(trialist.ownMs / (aideml.ownMs + aideml.startMs));
  return judged(
    {
      name: `aideml-step-${row.step}`,
      value: ratioOf(row),
      unit: "of aideml's own time",
      ours: ms(trialist.ownMs),
      limit: ms(aideml.ownMs),
      note: `medians of steps ${first} to ${last}; ${figure(trialist.ownMs / library.ownMs)} of the library's loop; ${withStart} if the fork of aideml's script were its own time`,
    },
    { atMost: bar },
  );
}

function growth(early: Row, late: Row): BenchResult {
  return judged(
    {
      name: "aideml-growth",
      value: late.trialist.ownMs / early.trialist.ownMs,
      unit: `× the time at step ${early.step}`,
      ours: `${ms(late.trialist.ownMs)} at step ${late.step}`,
      limit: `${ms(early.trialist.ownMs)} at step ${early.step}`,
      note: `aideml's: ${figure(late.aideml.ownMs / early.aideml.ownMs)} ×`,
    },
    { atMost: bars.growth },
  );
}
