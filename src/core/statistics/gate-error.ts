import type { Promotion } from "../protocol/environment.js";
import type { Noise } from "../protocol/verdict.js";
import { generatorOf, placeIn } from "./generator.js";
import type { PairedResult } from "./paired.js";
import { type Share, shareOf } from "./proportion.js";
import { mean } from "./student.js";
import { noiseFloorVerdict, orderVerdict, pairedVerdict } from "./verdict.js";

/** Gains of a candidate over its leader, positive is better: record by record, or one alone where there are no records. */
export type Gains = readonly number[];

/** All that a rule gets to see of one candidate: its first measurement against the leader, and the pairs of a confirmation. */
export interface Look {
  readonly first: Gains;
  readonly pairs: readonly Gains[];
}

/** The rule in force, and what calibration told it. */
export interface GateRule {
  readonly promotion: Promotion;
  readonly noise: Noise;
}

interface Judged {
  /** It looked better at first, so that the rule measured it again. */
  readonly confirmed: boolean;
  readonly kept: boolean;
}

/** What the rule makes of a candidate whose true gain is higher by `planted` than what was measured. */
export function judgeLook(look: Look, planted: number, { promotion, noise }: GateRule): Judged {
  const gain = mean(look.first) + planted;
  const { level } = promotion;
  if (orderVerdict(gain, level).result !== "improved") return { confirmed: false, kept: false };
  if (promotion.rule === "any") return { confirmed: false, kept: true };
  const { deterministic } = noise;
  const paired = (gains: readonly Gains[]): boolean =>
    pairedVerdict(
      gains.map((each, seed) => pairOf(each, planted, seed)),
      "maximize",
      level,
      { deterministic },
    ).result === "improved";
  if (promotion.rule === "confirmed") return { confirmed: true, kept: paired(look.pairs) };
  const byRecords = deterministic && look.first.length > 1;
  const kept = byRecords ? paired([look.first]) : noiseFloorVerdict(gain, noise, level, promotion.minimumGain).result === "improved";
  return { confirmed: false, kept };
}

/** A candidate that gains this over a leader of zero, whatever the metric's direction was. */
function pairOf(gains: Gains, planted: number, seed: number): PairedResult {
  const values = gains.map((gain) => gain + planted);
  const ids = [...gains.keys()];
  const records = (of: number[]): PairedResult["leader"]["records"] => (gains.length > 1 ? { metric: "gain", ids, values: of } : null);
  return {
    seed,
    candidate: { value: mean(values), records: records(values) },
    leader: { value: 0, records: records(gains.map(() => 0)) },
  };
}

/** How many of these candidates a rule keeps, of all and of those that it measured again. */
export function keptAmong(looks: Iterable<Look>, planted: number, rule: GateRule): { readonly kept: Share; readonly confirmed: Share } {
  let [all, confirmed, kept, keptConfirmed] = [0, 0, 0, 0];
  for (const look of looks) {
    const judged = judgeLook(look, planted, rule);
    all += 1;
    if (judged.confirmed) confirmed += 1;
    if (judged.kept) kept += 1;
    if (judged.confirmed && judged.kept) keptConfirmed += 1;
  }
  return { kept: shareOf(kept, all), confirmed: shareOf(keptConfirmed, confirmed) };
}

/** Real differences between measurements of equals, to draw candidates from. */
export interface Differences {
  /** Against the leader's calibrated value. */
  readonly firsts: readonly Gains[];
  readonly pairs: readonly Gains[];
}

/** Takes the mean over everything away, so that nothing is better than anything: what is left is noise. */
export function centred(gains: readonly Gains[]): Gains[] {
  const all = mean(gains.map(mean));
  return gains.map((each) => each.map((gain) => gain - all));
}

/**
 * Candidates without a gain: pairs are drawn with replacement, and so are records, the same ones for all measurements of a
 * candidate, as a run scores the same records every time (a bootstrap of both sides of the table; Efron, "Bootstrap methods:
 * another look at the jackknife", 1979).
 */
export function* drawnLooks(
  { firsts, pairs }: Differences,
  of: { readonly pairs: number; readonly draws: number; readonly seed: number },
): Generator<Look> {
  const uniform = generatorOf(of.seed);
  const records = firsts[0]?.length ?? 0;
  for (let draw = 0; draw < of.draws; draw++) {
    const chosen = records > 1 ? Array.from({ length: records }, () => placeIn(records, uniform)) : [0];
    const drawn = (from: readonly Gains[]): Gains => {
      const gains = from[placeIn(from.length, uniform)] ?? [];
      return chosen.map((record) => gains[record] ?? Number.NaN);
    };
    yield { first: drawn(firsts), pairs: Array.from({ length: of.pairs }, () => drawn(pairs)) };
  }
}

/** Draws that tell a rate of 5 % within a percent. */
const mostDraws = 2000;
const fewestDraws = 200;
const mostNumbers = 16_000_000;

/** How many candidates are drawn: fewer where each takes many records, so that it stays a matter of seconds. */
export function drawsFor(records: number, pairs: number): number {
  return Math.max(fewestDraws, Math.min(mostDraws, Math.floor(mostNumbers / (Math.max(1, records) * (pairs + 1)))));
}
