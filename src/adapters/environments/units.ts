/** A quantity as YAML holds it, read; or why not, in the words of an error. */
export type Quantity =
  | { readonly ok: true; readonly value: number }
  | { readonly ok: false; readonly expected: string; readonly todo: string };

interface Units {
  readonly kind: string;
  readonly example: string;
  readonly factors: Readonly<Record<string, number>>;
  /** Units that differ from a right one by more than their case, and what was probably meant. */
  readonly aliases: Readonly<Record<string, string>>;
}

const durations: Units = {
  kind: "a duration with its unit (ms, s, min, h, d)",
  example: "s",
  factors: { ms: 1, s: 1_000, min: 60_000, h: 3_600_000, d: 86_400_000 },
  aliases: { sec: "s", second: "s", m: "min", minute: "min", hr: "h", hour: "h", day: "d", msec: "ms", millisecond: "ms" },
};

/** Decimal units are powers of 1000, binary ones of 1024: a cap of "16 MB" is 16,000,000 bytes. */
const sizes: Units = {
  kind: "a size with its unit (B, kB, MB, GB, TB are powers of 1000; KiB, MiB, GiB, TiB powers of 1024)",
  example: "MiB",
  factors: { B: 1, kB: 1e3, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 },
  aliases: { byte: "B", k: "KiB", m: "MiB", g: "GiB", t: "TiB" },
};

/** "10 s", "500 ms", "10 min", "2 h" → milliseconds. */
export function readDuration(input: string | number): Quantity {
  return read(input, durations);
}

/** "1 MiB" (2^20), "16 MB" (16 × 10^6) → bytes. */
export function readSize(input: string | number): Quantity {
  return read(input, sizes);
}

function read(input: string | number, units: Units): Quantity {
  const refused = (todo: string): Quantity => ({ ok: false, expected: units.kind, todo });
  if (typeof input === "number") return refused(bareNumber(String(input), units));
  const match = /^\s*(\d+(?:\.\d+)?)\s*([A-Za-zµ]*)\s*$/.exec(input);
  if (match === null) return refused(`write a number and a unit, such as "10 ${units.example}"`);
  const [, digits = "", name = ""] = match;
  if (name === "") return refused(bareNumber(digits, units));
  const factor = Object.hasOwn(units.factors, name) ? units.factors[name] : undefined;
  if (factor === undefined) return refused(otherUnit(digits, name, units));
  const value = Math.round(Number(digits) * factor);
  if (value < 1) return refused("it must be more than nothing; leave the key out for the default");
  return Number.isSafeInteger(value)
    ? { ok: true, value }
    : refused("it is larger than anything that can be measured; write a smaller one");
}

function bareNumber(digits: string, units: Units): string {
  return `a bare number does not say what it counts; did you mean "${digits} ${units.example}"?`;
}

function otherUnit(digits: string, name: string, units: Units): string {
  const plain = name.toLowerCase();
  const sameLetters = Object.keys(units.factors).find((unit) => unit.toLowerCase() === plain);
  const alias = units.aliases[plain] ?? units.aliases[plain.replace(/s$/, "")];
  const meant = sameLetters ?? alias;
  return meant === undefined ? `use one of the units ${Object.keys(units.factors).join(", ")}` : `did you mean "${digits} ${meant}"?`;
}
