import { readReply } from "./reply-body.js";
import { type Exchange, ReplayDiffersError, WireError } from "./traffic.js";

export interface RecordingOptions {
  readonly fetch: typeof globalThis.fetch;
  /** Takes secrets out of what came back, before it is recorded or read. */
  readonly redact: (text: string) => string;
  readonly timeoutMs: number;
  readonly now: () => number;
  /** Called before each request with its size; what it throws keeps the request from being made. */
  readonly beforeRequest: () => void;
}

/** Everything else may hold a key, a cookie or an account's name. */
const recordedRequestHeaders = /^(accept|content-type|anthropic-version|anthropic-beta)$/;
const recordedResponseHeaders =
  /^(content-type|retry-after|retry-after-ms|request-id|x-request-id|openai-processing-ms|x-ratelimit-.*|anthropic-ratelimit-.*)$/;

/** A fetch that keeps what went over the wire, and reads each reply to its end within a time limit. */
export class RecordingFetch {
  readonly exchanges: Exchange[] = [];
  readonly #startedAt: number;

  constructor(private readonly options: RecordingOptions) {
    this.#startedAt = options.now();
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const body = typeof init?.body === "string" ? init.body : "";
    this.options.beforeRequest();
    const started = this.options.now();
    const seen: Seen = { status: null, responseHeaders: {}, responseBody: null };
    let error: WireError | null = null;
    try {
      await this.#exchange(input, init ?? {}, seen);
    } catch (cause) {
      if (cause instanceof ReplayDiffersError) throw cause;
      error = wireError(cause, init?.signal ?? null, this.options.now() - started);
    }
    this.exchanges.push({
      url: withoutSecrets(input),
      method: init?.method ?? "GET",
      requestHeaders: headersOf(new Headers(init?.headers), recordedRequestHeaders, (text) => text),
      requestBody: body,
      ...seen,
      startedAfterMs: started - this.#startedAt,
      ms: this.options.now() - started,
      error: error === null ? null : { kind: error.kind, message: this.options.redact(error.message) },
    });
    init?.signal?.throwIfAborted();
    if (error !== null) throw error;
    return new Response(seen.responseBody, { status: seen.status ?? 200, headers: seen.responseHeaders });
  };

  async #exchange(input: Parameters<typeof fetch>[0], init: RequestInit, seen: Seen): Promise<void> {
    const limit = new AbortController();
    const late = (): void => limit.abort(new WireError("timed_out", `no whole reply came within ${this.options.timeoutMs} ms`));
    const timer = setTimeout(late, this.options.timeoutMs);
    const signal = init.signal ? AbortSignal.any([init.signal, limit.signal]) : limit.signal;
    try {
      // A redirect is not followed: the key would go to whatever host it names.
      const response = await this.options.fetch(input, { ...init, signal, redirect: "manual" });
      seen.status = response.status;
      seen.responseHeaders = headersOf(response.headers, recordedResponseHeaders, this.options.redact);
      await readReply(response, this.options.redact, (text) => {
        seen.responseBody = text;
      });
    } finally {
      clearTimeout(timer);
    }
  }
}

interface Seen {
  status: number | null;
  responseHeaders: Record<string, string>;
  responseBody: string | null;
}

/** Codes of failures before a byte of the request left. */
const notConnected = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);
/** The time limits that Node.js itself sets. */
const nodesLimits = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);

function wireError(cause: unknown, signal: AbortSignal | null, ms: number): WireError {
  if (cause instanceof WireError) return cause;
  if (signal?.aborted) return new WireError("stopped", "nobody waited for the reply any more");
  const { codes, words } = chainOf(cause);
  if (codes.some((code) => nodesLimits.has(code))) return new WireError("timed_out", `no whole reply came within ${Math.round(ms)} ms`);
  const early = codes.some((code) => notConnected.has(code) || code.startsWith("ERR_TLS") || code.includes("CERT"));
  const message = early ? `no connection: ${words}` : `the connection broke before the whole reply was there: ${words}`;
  return new WireError(early ? "no_connection" : "cut_off", message, { cause });
}

/** What fetch throws says `fetch failed`; the reason is in its causes, and in their lists where several addresses were tried. */
function chainOf(error: unknown): { codes: readonly string[]; words: string } {
  const codes: string[] = [];
  const words: string[] = [];
  const waiting: unknown[] = [error];
  for (let depth = 0; depth < 20 && waiting.length > 0; depth++) {
    const next = waiting.shift();
    if (!(next instanceof Error)) continue;
    if ("code" in next && typeof next.code === "string") codes.push(next.code);
    if (next.message !== "") words.push(next.message);
    waiting.push(...(next instanceof AggregateError ? next.errors : []), next.cause);
  }
  return { codes, words: words.at(-1) ?? "unknown" };
}

function headersOf(headers: Headers, allowed: RegExp, redact: (text: string) => string): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => allowed.test(name)).map(([name, value]) => [name, redact(value)]));
}

function withoutSecrets(input: Parameters<typeof fetch>[0]): string {
  const url = new URL(input instanceof Request ? input.url : input);
  return `${url.origin}${url.pathname}`;
}
