import jstat from "jstat";

/** A count of hits among tries, with an exact interval of the rate behind it. */
export interface Share {
  readonly hits: number;
  readonly of: number;
  readonly lower: number;
  readonly upper: number;
}

/** Two-sided confidence of every share. */
export const shareConfidence = 0.95;

/**
 * The exact interval of a proportion (Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case
 * of the binomial", Biometrika 26, 1934): it covers the rate at least as often as it says, also for no hit at all.
 * @throws RangeError for counts that are none
 */
export function shareOf(hits: number, of: number): Share {
  if (!Number.isInteger(hits) || !Number.isInteger(of) || hits < 0 || hits > of)
    throw new RangeError(`hits among tries were expected, ${hits} of ${of} was given`);
  const tail = (1 - shareConfidence) / 2;
  const { beta } = jstat.jStat;
  return {
    hits,
    of,
    lower: hits === 0 ? 0 : beta.inv(tail, hits, of - hits + 1),
    upper: hits === of ? 1 : beta.inv(1 - tail, hits + 1, of - hits),
  };
}
