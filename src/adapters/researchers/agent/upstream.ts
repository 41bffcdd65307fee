import type { IncomingHttpHeaders } from "node:http";
import type { ModelSettings } from "../model/settings.js";
import { type Exchange, WireError } from "../model/traffic.js";

/** Largest reply, unpacked. */
const maxReplyBytes = 32 * 1024 * 1024;

/** What of an agent's headers goes on; everything else may name it, or carry what it takes for a key. */
const sentHeaders = ["accept", "content-type", "anthropic-version", "anthropic-beta", "openai-beta"] as const;
const returnedHeaders =
  /^(content-type|retry-after|retry-after-ms|request-id|x-request-id|x-should-retry|anthropic-ratelimit-.*|x-ratelimit-.*)$/;

const providersAddresses: Readonly<Record<string, string>> = {
  anthropic: "https://api.anthropic.com/v1",
  openai: "https://api.openai.com/v1",
};

/** Models that an agent can be given: their address is known, and the formats that agents speak. */
export function addressOf({ provider, baseUrl }: Pick<ModelSettings, "provider" | "baseUrl">): string | null {
  if (provider !== "openai-compatible" && !Object.hasOwn(providersAddresses, provider)) return null;
  return (baseUrl ?? providersAddresses[provider] ?? "").replace(/\/+$/, "");
}

export interface UpstreamRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent and never recorded. */
  readonly key: Readonly<Record<string, string>>;
  readonly body: string;
  readonly timeoutMs: number;
}

/** Where a reply goes while it comes, secrets removed. */
export interface Receiver {
  head(status: number, headers: Readonly<Record<string, string>>): void;
  piece(text: string): void;
}

export function headersToSend(given: IncomingHttpHeaders): Record<string, string> {
  const entries = sentHeaders.flatMap((name): [string, string][] => {
    const value = given[name];
    return typeof value === "string" ? [[name, value]] : [];
  });
  const headers: Record<string, string> = { ...Object.fromEntries(entries), "content-type": "application/json" };
  // A context beyond the usual one costs more than the table of prices says.
  const betas = headers["anthropic-beta"]?.split(",").filter((each) => !each.trim().startsWith("context-1m"));
  if (betas !== undefined) headers["anthropic-beta"] = betas.join(",");
  if (betas?.length === 0) delete headers["anthropic-beta"];
  return headers;
}

export function keyHeaders(provider: string, key: string | null): Record<string, string> {
  if (key === null) return {};
  return provider === "anthropic" ? { "x-api-key": key } : { authorization: `Bearer ${key}` };
}

/** Sends one request, hands its reply on as it comes, and says what went over the wire. Does not throw. */
export async function exchange(
  request: UpstreamRequest,
  receiver: Receiver,
  redact: (text: string) => string,
  signal: AbortSignal,
): Promise<Exchange> {
  const startedAt = Date.now();
  const seen: Pick<Exchange, "status" | "responseHeaders" | "responseBody"> = { status: null, responseHeaders: {}, responseBody: null };
  const into = { ...seen };
  let error: WireError | null = null;
  try {
    await send(request, into, receiver, redact, signal);
  } catch (cause) {
    error = wireError(cause, signal, into.status !== null);
  }
  return {
    url: request.url,
    method: "POST",
    requestHeaders: { ...request.headers },
    requestBody: request.body,
    ...into,
    startedAfterMs: 0,
    ms: Date.now() - startedAt,
    error: error === null ? null : { kind: error.kind, message: redact(error.message) },
  };
}

async function send(
  { url, headers, key, body, timeoutMs }: UpstreamRequest,
  into: { status: number | null; responseHeaders: Record<string, string>; responseBody: string | null },
  receiver: Receiver,
  redact: (text: string) => string,
  signal: AbortSignal,
): Promise<void> {
  const late = AbortSignal.timeout(timeoutMs);
  // A redirect is not followed: the key would go to whatever host it names.
  const init = { method: "POST", headers: { ...headers, ...key }, body, redirect: "manual" } as const;
  const response = await fetch(url, { ...init, signal: AbortSignal.any([signal, late]) });
  into.status = response.status;
  if (response.status >= 300 && response.status < 400) {
    await response.body?.cancel();
    throw new WireError("redirected", `the server redirects elsewhere (status ${response.status}), which is not followed`);
  }
  const kept = [...response.headers].filter(([name]) => returnedHeaders.test(name));
  into.responseHeaders = Object.fromEntries(kept.map(([name, value]) => [name, redact(value)]));
  receiver.head(response.status, into.responseHeaders);
  into.responseBody = "";
  for await (const text of linesOf(response)) {
    const piece = redact(text);
    into.responseBody += piece;
    receiver.piece(piece);
  }
}

/** A reply in whole lines, so that nothing that must be taken out is cut in two. */
async function* linesOf(response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let [pending, bytes] = ["", 0];
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).byteLength;
    if (bytes > maxReplyBytes) throw new WireError("too_large", `the reply is larger than ${maxReplyBytes} bytes`);
    pending += decoder.decode(chunk as Uint8Array, { stream: true });
    const whole = pending.lastIndexOf("\n") + 1;
    if (whole > 0) yield pending.slice(0, whole);
    pending = pending.slice(whole);
  }
  pending += decoder.decode();
  if (pending !== "") yield pending;
}

function wireError(cause: unknown, signal: AbortSignal, hasBegun: boolean): WireError {
  if (cause instanceof WireError) return cause;
  if (signal.aborted) return new WireError("stopped", "the session was over before the whole reply was there");
  if (cause instanceof Error && cause.name === "TimeoutError") return new WireError("timed_out", "no whole reply came in time", { cause });
  const reason = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const code = reason instanceof Error && "code" in reason ? String(reason.code) : "";
  const early = !hasBegun && /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS.*)$/.test(code);
  const words = reason instanceof Error ? reason.message : String(reason);
  return early
    ? new WireError("no_connection", `no connection: ${words}`, { cause })
    : new WireError("cut_off", `the connection broke before the whole reply was there: ${words}`, { cause });
}
