import { holm } from "../../core/statistics/multiple.js";
import type { ChangeClass } from "./document.js";
import type { Measured } from "./measured.js";

export interface Classified {
  readonly class: ChangeClass | null;
  readonly adjustedP: number | null;
  readonly note: string;
}

/**
 * What leaving out each change on its own says of it. `margin`: what counts as no difference.
 *
 * **real** and **harmful** are claims that a search among several changes could make by luck, so each of the two is
 * adjusted by Holm for the number of changes compared. **neutral** claims equivalence by the two one-sided tests of
 * Schuirmann ("A comparison of the two one-sided tests procedure and the power approach", Journal of Pharmacokinetics and
 * Biopharmaceutics 15, 1987): the interval at 1 − 2·level lies within the margin. It is not adjusted, since what it leads
 * to, the smallest recipe, is measured anew. An interval that leaves out zero is not called neutral, however small.
 */
export function classify(measured: readonly Measured[], level: number, margin: number): Classified[] {
  const compared = measured.flatMap((each) => (each.kind === "compared" ? [each] : []));
  const better = holm(compared.map(({ pBetter }) => pBetter ?? 1));
  const worse = holm(compared.map(({ pWorse }) => pWorse ?? 1));
  return measured.map((each) => {
    if (each.kind === "open") return { class: null, adjustedP: null, note: "not measured yet" };
    if (each.kind === "failed") {
      const note = each.isInvalid ? `without it the winner fails: ${each.reason}` : `not measured: ${each.reason}`;
      return { class: each.isInvalid ? "required" : "undecided", adjustedP: null, note };
    }
    const place = compared.indexOf(each);
    const p = { better: better[place] ?? 1, worse: worse[place] ?? 1 };
    const name = classOf(each, p, level, margin);
    return { class: name, adjustedP: each.pBetter === null ? null : p.better, note: name === "undecided" ? noteOf(each, level) : "" };
  });
}

function classOf(
  { gain: { lower, upper } }: Extract<Measured, { kind: "compared" }>,
  p: { readonly better: number; readonly worse: number },
  level: number,
  margin: number,
): ChangeClass {
  if (lower === null || upper === null) return "undecided";
  if (p.better <= level) return "real";
  if (p.worse <= level) return "harmful";
  return lower <= 0 && upper >= 0 && -lower <= margin && upper <= margin ? "neutral" : "undecided";
}

function noteOf({ gain, pBetter, pWorse }: Extract<Measured, { kind: "compared" }>, level: number): string {
  if (gain.lower === null) return "one pair says nothing of the next: more --pairs would";
  const alone = (pBetter ?? 1) <= level ? pBetter : (pWorse ?? 1) <= level ? pWorse : null;
  return alone === null ? "" : "its interval alone leaves out zero; for several changes at once that is not enough";
}
