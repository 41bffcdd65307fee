import { type Exchange, exchangesOf, ReplayDiffersError, WireError } from "./traffic.js";

/** A fetch without network: recorded exchanges, served in order to the very requests that they were recorded for. */
export function replayingFetch(traffic: Uint8Array): typeof globalThis.fetch {
  const exchanges = exchangesOf(traffic);
  let next = 0;
  return async (input, init) => {
    const exchange = exchanges[next];
    if (exchange === undefined)
      throw new ReplayDiffersError(
        `the record holds ${exchanges.length} requests, request ${next + 1} was made: the code asks differently`,
      );
    next += 1;
    assertSame(exchange, next, String(input instanceof Request ? input.url : input), String(init?.body ?? ""));
    if (exchange.error !== null) throw new WireError(exchange.error.kind, exchange.error.message);
    return new Response(exchange.responseBody, { status: exchange.status ?? 200, headers: exchange.responseHeaders });
  };
}

function assertSame(exchange: Exchange, number: number, url: string, body: string): void {
  const path = new URL(url).pathname;
  const recorded = new URL(exchange.url).pathname;
  if (path !== recorded) throw new ReplayDiffersError(`request ${number} went to ${recorded} when it was recorded, now it goes to ${path}`);
  if (body === exchange.requestBody) return;
  let at = 0;
  while (body[at] === exchange.requestBody[at]) at += 1;
  const around = (text: string): string => JSON.stringify(text.slice(Math.max(0, at - 40), at + 40));
  throw new ReplayDiffersError(
    `the body of request ${number} differs from the recorded one at character ${at}: ${around(exchange.requestBody)} was recorded, ${around(body)} is asked now`,
  );
}
