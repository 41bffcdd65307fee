import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerTo, type ChatRequest } from "./stub-answers.js";

/** One question to the model. Times are milliseconds since 1970, with fractions. */
export interface ServedRequest {
  /** When its head was read. */
  readonly arrivedAt: number;
  /** When the last byte of the answer was handed to the kernel. */
  readonly answeredAt: number;
  /** Bytes of the question. */
  readonly bytes: number;
}

/** The name under which it is asked. */
export const stubModel = "stub";

/** An OpenAI-compatible model on this machine that does not think: every answer comes at once. */
export class StubServer {
  readonly requests: ServedRequest[] = [];
  private readonly clock = Date.now() - performance.now();
  private asked = 0;
  private readonly server = createServer((request, response) => void this.serve(request, response));

  static async start(): Promise<StubServer> {
    const stub = new StubServer();
    await new Promise<void>((resolve, reject) => {
      stub.server.once("error", reject);
      stub.server.listen(0, "127.0.0.1", resolve);
    });
    return stub;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAt = this.now();
    const body = await textOf(request);
    response.once("finish", () => this.requests.push({ arrivedAt, answeredAt: this.now(), bytes: Buffer.byteLength(body) }));
    const { status, document } = this.answer(request, body);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(document));
  }

  private answer(request: IncomingMessage, body: string): { readonly status: number; readonly document: unknown } {
    if (request.method === "GET" && request.url?.endsWith("/models")) {
      return { status: 200, document: { object: "list", data: [{ id: stubModel, object: "model" }] } };
    }
    if (request.method !== "POST" || !request.url?.endsWith("/chat/completions")) return refusal(404, "only chat completions are here");
    const question = JSON.parse(body) as ChatRequest;
    if (question.stream === true) return refusal(400, "this server does not stream");
    this.asked += 1;
    return { status: 200, document: completion(question, this.asked, body.length) };
  }

  private now(): number {
    return this.clock + performance.now();
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString("utf8");
}

function refusal(status: number, message: string): { readonly status: number; readonly document: unknown } {
  return { status, document: { error: { message, type: "invalid_request_error" } } };
}

function completion(question: ChatRequest, number: number, length: number): unknown {
  const message = answerTo(question, number);
  const [prompt, answer] = [Math.ceil(length / 4), Math.ceil(JSON.stringify(message).length / 4)];
  return {
    id: `chatcmpl-${number}`,
    object: "chat.completion",
    created: Math.floor(Date.now() / 1000),
    model: stubModel,
    choices: [{ index: 0, message, finish_reason: message.tool_calls === undefined ? "stop" : "tool_calls" }],
    usage: { prompt_tokens: prompt, completion_tokens: answer, total_tokens: prompt + answer },
  };
}
