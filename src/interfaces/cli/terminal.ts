import { createColors } from "picocolors";

/** Where a command prints: text for people, one JSON document for machines; never both on standard output. */
export interface Terminal {
  readonly json: boolean;
  readonly isInteractive: boolean;
  readonly paint: { bold(text: string): string; dim(text: string): string; good(text: string): string; bad(text: string): string };
  /** For people, on standard output; silent with `--json`. */
  say(text: string): void;
  /** For people, on standard error: progress, warnings. */
  note(text: string): void;
  /** For machines, on standard output; silent without `--json`. */
  data(value: unknown): void;
  /** Replaces the live line at the bottom, where there is a terminal; otherwise does nothing. */
  live(text: string): void;
}

export function openTerminal(json: boolean): Terminal {
  const isInteractive = process.stderr.isTTY === true && process.env.CI === undefined;
  const colors = createColors(process.stdout.isTTY === true && process.env.NO_COLOR === undefined && !json);
  let liveShown = false;
  const clear = (): void => {
    if (liveShown) process.stderr.write("\r\u001b[2K");
    liveShown = false;
  };
  return {
    json,
    isInteractive,
    paint: { bold: colors.bold, dim: colors.dim, good: colors.green, bad: colors.red },
    say(text) {
      if (json) return;
      clear();
      process.stdout.write(`${text}\n`);
    },
    note(text) {
      clear();
      process.stderr.write(`${text}\n`);
    },
    data(value) {
      if (json) process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
    },
    live(text) {
      if (!isInteractive || json) return;
      const width = process.stderr.columns ?? 80;
      process.stderr.write(`\r\u001b[2K${text.slice(0, width - 1)}`);
      liveShown = true;
    },
  };
}
