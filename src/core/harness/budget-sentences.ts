/** A sentence of the record that says which cap is meant: decisions write it, whoever decides them again reads it. */
interface CapSentence {
  write(cap: string): string;
  /** The cap; null: it is another sentence. */
  read(sentence: string): string | null;
}

/** Why a run finishes that has nothing left for what is due. */
export const budgetUsedUp: CapSentence = {
  write: (cap) => `budget: ${cap}`,
  read: (sentence) => /^budget: (\w+)$/.exec(sentence)?.[1] ?? null,
};

/** Why a run is suspended that cannot measure its baseline. */
export const calibrationNotCovered: CapSentence = {
  write: (cap) => `the ${cap} budget does not cover the calibration`,
  read: (sentence) => /^the (\w+) budget does not cover the calibration$/.exec(sentence)?.[1] ?? null,
};
