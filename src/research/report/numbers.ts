/** Numbers for people. Exports and JSON keep full precision; only text rounds. */

/** What stands where a number is not known. */
export const unknownNumber = "-";

/** `value` in `digits` significant digits, never fewer than its whole part has: 0.51234, 12346, 1.2e-9. */
export function significant(value: number | null | undefined, digits = 5): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return unknownNumber;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-5) return value.toExponential(digits - 1).replace(/\.?0*e\+?/, "e");
  if (size >= 10 ** digits) return String(Math.round(value));
  return String(Number(value.toPrecision(digits)));
}

/** With its sign, for differences: `+0.0123`, `-0.0123`, `0`. */
export function signed(value: number | null | undefined, digits = 3): string {
  const text = significant(value, digits);
  return value !== null && value !== undefined && value > 0 && text !== unknownNumber ? `+${text}` : text;
}

/** `percent(8.712)`: `+8.71 %`. */
export function percent(value: number | null | undefined): string {
  const text = signed(value, 3);
  return text === unknownNumber ? text : `${text} %`;
}

/** `0.0012 to 0.005`; an unknown bound is an open end. */
export function range(
  lower: number | null,
  upper: number | null,
  write: (value: number) => string = (value) => significant(value, 4),
): string {
  if (lower === null && upper === null) return "not known";
  if (lower === null) return `at most ${write(upper ?? 0)}`;
  return upper === null ? `at least ${write(lower)}` : `${write(lower)} to ${write(upper)}`;
}

/** Two one-sided bounds at 0.05 enclose 90 %: `90 %`. */
export function coverage(level: number): string {
  return `${significant((1 - 2 * level) * 100, 4)} %`;
}

/** `850 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function duration(ms: number | null): string {
  if (ms === null || !Number.isFinite(ms)) return unknownNumber;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${significant(ms / 1000, 3)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return pairOf(seconds, 60, "min", "s");
  if (seconds < 86_400) return pairOf(Math.round(seconds / 60), 60, "h", "min");
  return pairOf(Math.round(seconds / 3600), 24, "d", "h");
}

function pairOf(count: number, base: number, large: string, small: string): string {
  const rest = count % base;
  const whole = `${Math.floor(count / base)} ${large}`;
  return rest === 0 ? whole : `${whole} ${rest} ${small}`;
}

/** `$1.20`; fractions of a cent keep two digits: `$0.0012`. */
export function money(usd: number): string {
  return usd === 0 || Math.abs(usd) >= 0.01 ? `$${usd.toFixed(2)}` : `$${significant(usd, 2)}`;
}

/** Large counts, short: `950`, `12.3k`, `4.56M`. */
export function count(n: number): string {
  if (n < 10_000) return String(Math.round(n));
  if (n < 999_500) return `${significant(n / 1000, 3)}k`;
  return n < 999_500_000 ? `${significant(n / 1e6, 3)}M` : `${significant(n / 1e9, 3)}G`;
}

/** `950 B`, `12.3 KiB`, `4 GiB`. */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  let rest = n;
  while (rest >= 1023.5 && power < units.length - 1) {
    rest /= 1024;
    power += 1;
  }
  return `${significant(rest, 3)} ${units[power]}`;
}

/** `1 trial`, `2 trials`. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}
