import { createColors } from "picocolors";
import { jsonDocument } from "../../research/report/hostile-text.js";

interface Paint {
  bold(text: string): string;
  dim(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

/** Where a command prints: text for people, one JSON document for machines; never both on standard output. */
export interface Terminal {
  readonly json: boolean;
  readonly isInteractive: boolean;
  /** For what is said. */
  readonly paint: Paint;
  /** For notes: standard error may be a file while standard output is a terminal, and the other way round. */
  readonly notePaint: Paint;
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
  let liveShown = false;
  const clear = (): void => {
    if (liveShown) process.stderr.write("\r\u001b[2K");
    liveShown = false;
  };
  return {
    json,
    isInteractive,
    paint: paintFor(process.stdout.isTTY === true && !json),
    notePaint: paintFor(process.stderr.isTTY === true),
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
      if (json) process.stdout.write(jsonDocument(value));
    },
    live(text) {
      if (!isInteractive || json) return;
      const width = process.stderr.columns ?? 80;
      process.stderr.write(`\r\u001b[2K${text.slice(0, width - 1)}`);
      liveShown = true;
    },
  };
}

function paintFor(isTerminal: boolean): Paint {
  const { bold, dim, green, red } = createColors(isTerminal && process.env.NO_COLOR === undefined);
  return { bold, dim, good: green, bad: red };
}
