/** One row of the table: a ratio against a limit that was measured in the same run. */
export interface BenchResult {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** `≤ 2`, `≥ 0.8`. */
  readonly bar: string;
  readonly met: boolean;
  /** What was measured of trialist, and the limit that it is held against, in words with units. */
  readonly ours: string;
  readonly limit: string;
  /** How it was measured, or why the bar is not met. */
  readonly note: string;
}

type Bar = { readonly atMost: number } | { readonly atLeast: number };

/** `ifMissed`: where the time goes, for a reader of a row that misses its bar. */
export function judged(row: Omit<BenchResult, "bar" | "met">, bar: Bar, ifMissed?: string): BenchResult {
  const met = "atMost" in bar ? row.value <= bar.atMost : row.value >= bar.atLeast;
  const note = met || ifMissed === undefined ? row.note : `${row.note}. Why not met: ${ifMissed}`;
  return { ...row, note, bar: "atMost" in bar ? `≤ ${bar.atMost}` : `≥ ${bar.atLeast}`, met };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

export function secondsOf(work: () => void): number {
  const start = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - start) / 1e9;
}

/** Milliseconds with three digits that count. */
export function ms(value: number): string {
  return `${Number(value.toPrecision(3))} ms`;
}

/** Three digits that count. */
export function figure(value: number): string {
  return String(Number(value.toPrecision(3)));
}
