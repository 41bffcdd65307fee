import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { ResearcherFailedError } from "../../../core/ports/researcher.js";
import type { AgentSession } from "../../../core/ports/session-agent.js";
import { nothing } from "../../../core/protocol/budget.js";
import { isDeeperThan } from "../../../core/protocol/depth.js";
import { failureOf, type ModelFailure } from "../model/failures.js";
import { keyOf, type ModelResearcherOptions, providerOf } from "../model/model-asker.js";
import type { Exchange } from "../model/traffic.js";
import { AgentBill } from "./agent-bill.js";
import { type Confined, confined } from "./confine.js";
import { addressOf, exchange, headersToSend, keyHeaders, type Receiver } from "./upstream.js";
import { isObject, type WireFormat, wireFormatOf, wirePaths } from "./wire-formats.js";

/** Longest request, in bytes. */
const longestBody = 32 * 1024 * 1024;

export type ProxyOptions = Pick<ModelResearcherOptions, "settings" | "price" | "key" | "redact">;

interface Asked {
  readonly format: WireFormat;
  readonly request: Confined;
  /** What follows the path. */
  readonly query: string;
}

/** Failures of a model that no other request of the agent would mend. */
const lasting: ReadonlySet<string> = new Set(["key_refused", "quota_exhausted", "model_unknown"]);

/**
 * The way from an agent to its model: every request is held to its model, reserved in the run's budget, sent with the key
 * that the agent never sees, billed and recorded.
 */
export class ModelProxy {
  /** What the last exchange failed by; null: it brought an answer. */
  lastFailure: ModelFailure | null = null;
  private readonly server: Server;
  private readonly over = new AbortController();
  private readonly open = new Set<Promise<void>>();

  constructor(
    private readonly options: ProxyOptions,
    private readonly session: Pick<AgentSession, "reserve">,
    /** Called when the session cannot go on; a text is its reason. */
    private readonly stop: (why: string | Error) => void,
  ) {
    // An agent thinks as long as it likes between two requests, and the one that says it is alive has no end.
    this.server = createServer({ requestTimeout: 0, headersTimeout: 0 }, (request, response) => {
      if (request.url === "/alive") return void response.writeHead(200).flushHeaders();
      const done = this.handle(request, response).catch((error: unknown) => {
        this.stop(error instanceof Error ? error : new Error(String(error)));
        response.destroy();
      });
      this.open.add(done);
      void done.finally(() => this.open.delete(done));
    });
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject).listen(path, resolve);
    });
  }

  /** Resolves when every turn has ended. */
  async close(): Promise<void> {
    this.over.abort();
    await Promise.all(this.open);
    await new Promise<void>((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }

  private async handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    // What an agent sends is hostile: whatever cannot be read is refused, and is nobody else's trouble.
    const asked = await this.read(incoming).catch(() => ({ status: 400, message: "the request cannot be read" }));
    if ("message" in asked) return refuse(response, asked.status, asked.message);
    const { settings, price } = this.options;
    const { key, redact } = await keyOf(this.options, providerOf(settings));
    // An agent may write down what it was never shown; a candidate's file may hold what it was.
    const body = redact(JSON.stringify(asked.request.body));
    const bill = new AgentBill(settings, price, asked.format, asked.request, body);
    const turn = await this.session.reserve(bill.worst());
    if (turn.refused !== null) {
      refuse(response, 402, `trialist: the run's budget does not cover another request: ${turn.refused}`);
      return this.stop(`budget: ${turn.refused}`);
    }
    if (this.over.signal.aborted || response.destroyed) return turn.end(nothing, null);
    const url = `${addressOf(settings)}${asked.format.path}`;
    const request = { url: `${url}${asked.query}`, headers: headersToSend(incoming.headers), key: keyHeaders(settings.provider, key) };
    const seen = await exchange({ ...request, body, timeoutMs: settings.timeoutMs }, receiverOf(response), redact, this.over.signal);
    const { usage, model } = bill.settle({ ...seen, url });
    turn.end(usage, model);
    finish(response, seen);
    this.judge(seen);
  }

  /** What the agent wants to ask, or why that is not served. */
  private async read(incoming: IncomingMessage): Promise<Asked | { readonly status: number; readonly message: string }> {
    const { pathname, search } = new URL(incoming.url ?? "/", "http://host");
    const format = wireFormatOf(pathname.replace(/^\/v1(?=\/)/, ""));
    if (incoming.method !== "POST" || format === null)
      return { status: 404, message: `trialist serves POST ${wirePaths} of a model, and nothing else` };
    const text = await textOf(incoming);
    if (text === null) return { status: 413, message: `a request holds at most ${longestBody} bytes` };
    const body = parsed(text);
    if (body === null || isDeeperThan(body, deepest))
      return { status: 400, message: `the body must be a JSON object of at most ${deepest} levels` };
    const request = confined(body, format, this.options.settings);
    if (typeof request === "string") return { status: 400, message: `trialist: ${request}` };
    return { format, request, query: search };
  }

  private judge(seen: Exchange): void {
    const failed = seen.error !== null || seen.status === null || seen.status >= 400;
    const failure = failed ? failureOf(seen, null, this.options.settings) : null;
    this.lastFailure = failure;
    if (failure !== null && lasting.has(failure.kind)) this.stop(asError(failure));
  }
}

/** Levels of a request: the schema of a tool is the deepest thing in one. */
const deepest = 200;

export function asError({ kind, message, todo }: ModelFailure): ResearcherFailedError {
  return new ResearcherFailedError(kind, message, nothing, { todo });
}

/** A client that went away misses its reply; what it costs is read to its end all the same. */
function receiverOf(response: ServerResponse): Receiver {
  return {
    head: (status, headers) => void (response.destroyed || response.writeHead(status, headers)),
    piece: (text) => void (response.destroyed || response.write(text)),
  };
}

function finish(response: ServerResponse, { error, status }: Exchange): void {
  if (error === null) response.end();
  else if (status === null || !response.headersSent) refuse(response, 502, `trialist: ${error.message}`);
  // Half a reply must not look like a whole one.
  else response.destroy();
}

/** In the shape that clients of every vendor read. */
function refuse(response: ServerResponse, status: number, message: string): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json", "x-should-retry": "false" });
  response.end(JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }));
}

async function textOf(incoming: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of incoming) {
      bytes += (chunk as Buffer).byteLength;
      if (bytes > longestBody) return null;
      chunks.push(chunk as Buffer);
    }
  } catch {
    // It hung up in the middle: nobody reads what is answered.
    return null;
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
