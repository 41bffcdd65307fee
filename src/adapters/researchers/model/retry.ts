import { drawsOf } from "../../../core/harness/draw.js";
import type { RoleRequest } from "../../../core/ports/researcher.js";
import type { Exchange } from "./traffic.js";

export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

const firstWaitMs = 1000;
const longestWaitMs = 60_000;
/** A server that asks for more patience than this is not waited for. */
export const longestAskedWaitMs = 15 * 60_000;

/** How long to wait before a request is made again after it failed `failed` times (from 1). */
export function waitMs(
  exchange: Exchange,
  failed: number,
  request: Pick<RoleRequest, "call" | "round" | "seed">,
  now: number,
): { ms: number; asked: boolean } {
  const asked = askedWaitMs(exchange, now);
  if (asked !== null) return { ms: asked, asked: true };
  const full = Math.min(longestWaitMs, firstWaitMs * 2 ** (failed - 1));
  // Half of it at random, so that calls which failed together do not come back together.
  const jitter = drawsOf(request.seed).uniform(`model retry ${request.call}.${request.round}`, failed);
  return { ms: full * (0.5 + 0.5 * jitter), asked: false };
}

function askedWaitMs({ responseHeaders, responseBody }: Exchange, now: number): number | null {
  const ms = Number.parseFloat(responseHeaders["retry-after-ms"] ?? "");
  if (ms >= 0) return ms;
  const header = responseHeaders["retry-after"];
  if (header !== undefined) {
    if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number.parseFloat(header) * 1000;
    const date = Date.parse(header);
    if (!Number.isNaN(date)) return Math.max(0, date - now);
  }
  // Google says it in the body alone.
  const delay = /"retryDelay":\s*"(\d+(?:\.\d+)?)s"/.exec(responseBody ?? "")?.[1];
  return delay === undefined ? null : Number.parseFloat(delay) * 1000;
}

/** Ends at once, with the signal's reason, when nobody waits any more. */
export const sleepFor: Sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
