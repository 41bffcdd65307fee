import { z } from "zod";

const durations: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 };
/** Decimal units are powers of 1000, binary ones of 1024: a cap of "16 MB" is 16,000,000 bytes. */
const sizes: Readonly<Record<string, number>> = { B: 1, KB: 1e3, MB: 1e6, GB: 1e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

function quantity(kind: string, units: Readonly<Record<string, number>>, example: string): z.ZodType<number> {
  const names = Object.keys(units).join(", ");
  return z.union([z.string(), z.number()]).transform((given, context) => {
    const match = /^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*$/.exec(String(given));
    const factor = match?.[2] === undefined ? undefined : units[match[2]];
    if (match === null || factor === undefined || typeof given === "number") {
      context.addIssue({ code: "custom", message: `expected a ${kind} with a unit (${names}), such as "${example}"; found ${JSON.stringify(given)}` });
      return z.NEVER;
    }
    const value = Math.round(Number(match[1]) * factor);
    if (value > 0 && Number.isSafeInteger(value)) return value;
    context.addIssue({ code: "custom", message: `expected a ${kind} above zero; found ${JSON.stringify(given)}` });
    return z.NEVER;
  });
}

/** Milliseconds, from "500 ms", "10 s", "10 min", "2 h". */
export const duration = quantity("duration", durations, "10 min");
/** Bytes, from "64 KiB", "16 MB", "4 GiB". */
export const size = quantity("size", sizes, "4 GiB");
