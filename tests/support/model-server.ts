import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Said, type Told, type WireFormat, wireFormatOf } from "./model-wire.js";

/** One request as it arrived. */
export interface ModelRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The body; null where it was no JSON. */
  readonly body: Record<string, unknown> | null;
}

/** What the server does with a request. */
export type Behaviour =
  /** Answers in the format of the path; `told` null: says nothing of what it used. */
  | { readonly do: "answer"; readonly text: string; readonly calls?: Said["calls"]; readonly told: Told | null }
  /** Sends exactly this. */
  | { readonly do: "send"; readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string }
  /** Promises a whole answer, sends half of it and hangs up. */
  | { readonly do: "half"; readonly text: string }
  /** Hangs up before a byte of the reply, or while it is being sent in pieces. */
  | { readonly do: "reset"; readonly when: "before" | "midway" }
  /** Never answers; with headers, or without even these. */
  | { readonly do: "hang"; readonly headers: boolean };

export const usual: Told = { input: 120, cachedInput: 20, output: 30, reasoning: 0 };

export function answer(text: string, told: Told | null = usual): Behaviour {
  return { do: "answer", text, told };
}

/** Calls tools, with or without words. */
export function calls(...used: Said["calls"]): Behaviour {
  return { do: "answer", text: "", calls: used, told: usual };
}

export function noUsage(text: string): Behaviour {
  return answer(text, null);
}

/** An error as APIs send it, or any body as it stands. */
export function status(
  code: number,
  body: string | Record<string, unknown> = { error: { message: `status ${code}` } },
  headers = {},
): Behaviour {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { do: "send", status: code, headers: { "content-type": "application/json", ...headers }, body: text };
}

export function html(code = 200): Behaviour {
  return status(code, "<!doctype html><title>A proxy</title><p>Please sign in", { "content-type": "text/html; charset=utf-8" });
}

export function wrongContentType(text = "hello"): Behaviour {
  return status(200, text, { "content-type": "text/plain" });
}

export const halfReply = (text: string): Behaviour => ({ do: "half", text });
export const never: Behaviour = { do: "hang", headers: false };
export const headersOnly: Behaviour = { do: "hang", headers: true };
export const resets: Behaviour = { do: "reset", when: "before" };
export const resetsMidway: Behaviour = { do: "reset", when: "midway" };

/** An answer of so many MiB. */
export function huge(mebibytes: number): Behaviour {
  return answer("x".repeat(mebibytes * 2 ** 20));
}

/** Behaviours in order; the last one stays. */
export function inTurn(...behaviours: readonly [Behaviour, ...Behaviour[]]): (request: ModelRequest, index: number) => Behaviour {
  return (_request, index) => behaviours[Math.min(index, behaviours.length - 1)] ?? behaviours[0];
}

/** Texts as answers, in order; the last one stays. */
export function answers(...texts: readonly [string, ...string[]]): (request: ModelRequest, index: number) => Behaviour {
  return (_request, index) => answer(texts[Math.min(index, texts.length - 1)] ?? texts[0]);
}

export interface ModelServer {
  readonly url: string;
  readonly requests: readonly ModelRequest[];
  close(): Promise<void>;
}

/** A real server that speaks chat completions and responses of OpenAI, messages of Anthropic, and generateContent of Google. */
export async function startModelServer(respond: (request: ModelRequest, index: number) => Behaviour): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  const server = createServer((incoming, response) => {
    void read(incoming).then((request) => {
      const index = requests.push(request) - 1;
      const format = wireFormatOf(request.path);
      if (format === null) return behave(status(404, { error: { message: `no such path: ${request.path}` } }), response, request, format);
      behave(respond(request, index), response, request, format);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function behave(behaviour: Behaviour, response: ServerResponse, request: ModelRequest, format: WireFormat | null): void {
  switch (behaviour.do) {
    case "send":
      response.writeHead(behaviour.status, behaviour.headers).end(behaviour.body);
      return;
    case "answer":
      response.writeHead(200, { "content-type": "application/json", "x-request-id": "req-1" });
      response.end(JSON.stringify(format?.(request, { text: behaviour.text, calls: behaviour.calls ?? [] }, behaviour.told)));
      return;
    case "half": {
      const body = Buffer.from(JSON.stringify(format?.(request, { text: behaviour.text, calls: [] }, usual)));
      response.writeHead(200, { "content-type": "application/json", "content-length": body.byteLength });
      response.write(body.subarray(0, body.byteLength / 2), () => setTimeout(() => response.destroy(), 20));
      return;
    }
    case "reset":
      if (behaviour.when === "before") return void response.socket?.resetAndDestroy();
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"id":', () => setTimeout(() => response.socket?.resetAndDestroy(), 20));
      return;
    case "hang":
      if (behaviour.headers) response.writeHead(200, { "content-type": "application/json" }).flushHeaders();
  }
}

async function read(incoming: IncomingMessage): Promise<ModelRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  const headers = Object.fromEntries(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]));
  return { path: new URL(incoming.url ?? "/", "http://host").pathname, headers, text, body: jsonOf(text) };
}

function jsonOf(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}
