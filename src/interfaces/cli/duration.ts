import { UsageError } from "./usage-error.js";

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds from "90s", "30min", "8h". @throws UsageError that names the option */
export function durationOption(name: string): (text: string) => number {
  return (text) => {
    const match = /^(\d+(?:\.\d+)?)\s*(ms|s|min|h|d)$/.exec(text.trim());
    const value = match === null ? Number.NaN : Number(match[1]) * (units[match[2] ?? ""] ?? Number.NaN);
    if (Number.isFinite(value) && value > 0) return value;
    throw new UsageError(`${name} expects a duration with a unit, such as 90s, 30min or 8h; ${JSON.stringify(text)} was given`);
  };
}
