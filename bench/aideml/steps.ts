import { median } from "../result.js";
import type { ServedRequest } from "./stub-server.js";
import type { WriteMeter } from "./write-meter.js";

/** One trial from the end of the one before to its own: asked for, run, judged and saved. Times are ms since 1970. */
export interface TimedStep {
  readonly begun: number;
  readonly ended: number;
  /** What its script took, and what started it, where that is known apart. */
  readonly scriptMs: number;
  readonly startMs: number;
}

/** What was seen of one program: its steps, and around them the model that it asked and the disk that it wrote to. */
export interface Side {
  readonly steps: readonly TimedStep[];
  readonly requests: readonly ServedRequest[];
  readonly written: WriteMeter;
}

/** Of a step, as medians over the window around it; bytes as the mean. */
export interface Share {
  readonly wallMs: number;
  /** What is left of `wallMs` without the three that follow. */
  readonly ownMs: number;
  readonly scriptMs: number;
  readonly startMs: number;
  readonly serverMs: number;
  readonly bytes: number;
  /** Bytes of the longest question. */
  readonly promptBytes: number;
}

export const windowSteps = 20;

/** Numbers of the first and last step of the window around a step: as near to it as the run's beginning and end allow. */
export function windowAround(step: number, total: number): { readonly first: number; readonly last: number } {
  const first = Math.max(1, Math.min(step - windowSteps / 2 + 1, total - windowSteps + 1));
  return { first, last: Math.min(total, first + windowSteps - 1) };
}

export function shareAt({ steps, requests, written }: Side, step: number): Share {
  const { first, last } = windowAround(step, steps.length);
  const rows = steps.slice(first - 1, last).map((each) => {
    const asked = requests.filter(({ arrivedAt }) => arrivedAt >= each.begun && arrivedAt < each.ended);
    const serverMs = asked.reduce((sum, { arrivedAt, answeredAt }) => sum + answeredAt - arrivedAt, 0);
    const wallMs = each.ended - each.begun;
    return {
      ...each,
      wallMs,
      serverMs,
      ownMs: wallMs - each.scriptMs - each.startMs - serverMs,
      promptBytes: Math.max(0, ...asked.map(({ bytes }) => bytes)),
    };
  });
  const of = (pick: (row: (typeof rows)[number]) => number): number => median(rows.map(pick));
  const bytes = written.upTo(rows.at(-1)?.ended ?? Number.NaN) - written.upTo(rows[0]?.begun ?? Number.NaN);
  return {
    wallMs: of((row) => row.wallMs),
    ownMs: of((row) => row.ownMs),
    scriptMs: of((row) => row.scriptMs),
    startMs: of((row) => row.startMs),
    serverMs: of((row) => row.serverMs),
    bytes: bytes / rows.length,
    promptBytes: of((row) => row.promptBytes),
  };
}
