import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { SessionRole, ToolSession } from "../../app/tool-sessions.js";
import { mcpServer } from "./server.js";

/** Longest request, in bytes: a change of files fits. */
const longestBody = 8 * 1024 * 1024;
/** Clients that are connected at once. */
const mostClients = 64;

export interface HttpOptions {
  /** Port 0: any free one. A path: of a Unix socket. */
  readonly listen: { readonly host: string; readonly port: number } | { readonly path: string };
  /** A bearer token is bound to one role's view. */
  readonly tokens: Readonly<Partial<Record<SessionRole, string>>>;
  readonly version: string;
  readonly openSession: (role: SessionRole) => ToolSession;
}

interface Client {
  readonly role: SessionRole;
  readonly transport: StreamableHTTPServerTransport;
  /** When it asked last: one that vanished without a word makes room for another. */
  seenAt: number;
  /** Requests that are being answered. */
  waiting: number;
}

export interface McpHttpServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves MCP over streamable HTTP at `/mcp`: every client is a session of its own, with the role of its token. */
export async function serveHttp(options: HttpOptions): Promise<McpHttpServer> {
  const clients = new Map<string, Client>();
  const server = createServer((request, response) => {
    handle(request, response, options, clients).catch((error: unknown) => {
      if (!response.headersSent) refuse(response, 500, error instanceof Error ? error.message : String(error));
      else response.destroy();
    });
  });
  const { listen } = options;
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(listen, resolve));
  const url = "path" in listen ? listen.path : `http://${listen.host}:${(server.address() as AddressInfo).port}/mcp`;
  return { url, close: () => close(server, clients) };
}

async function close(server: HttpServer, clients: ReadonlyMap<string, Client>): Promise<void> {
  for (const { transport } of clients.values()) await transport.close();
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  options: HttpOptions,
  clients: Map<string, Client>,
): Promise<void> {
  if (new URL(request.url ?? "/", "http://host").pathname !== "/mcp") return refuse(response, 404, "MCP is served at /mcp");
  // A page in somebody's browser must not reach a server on their machine under another name.
  if (!isLocal(request.headers.host, "host" in options.listen ? options.listen.host : "localhost") || request.headers.origin !== undefined)
    return refuse(response, 403, "requests come from this machine, and from no web page");
  const role = roleOf(request.headers.authorization, options.tokens);
  if (role === null) {
    response.setHeader("www-authenticate", "Bearer");
    return refuse(response, 401, "a bearer token of this run is needed: `trialist mcp` prints where it lies");
  }
  const body = request.method === "POST" ? await readBody(request) : undefined;
  if (body === "too large") return refuse(response, 413, `a request holds at most ${longestBody} bytes`);
  if (body === "no JSON") return refuse(response, 400, "the body must be JSON");
  const named = request.headers["mcp-session-id"];
  const client = typeof named === "string" ? clients.get(named) : undefined;
  if (typeof named === "string" && client?.role !== role)
    return refuse(response, 404, "there is no such session for this token: initialize again");
  if (client === undefined && clients.size >= mostClients && !(await closeIdlest(clients, role)))
    return refuse(response, 503, `at most ${mostClients} clients at once`);
  const served = client ?? (await connect(role, options, clients));
  served.seenAt = Date.now();
  if (request.method === "POST") served.waiting += 1;
  response.once("close", () => {
    if (request.method === "POST") served.waiting -= 1;
  });
  await served.transport.handleRequest(request, response, body?.value);
}

async function connect(role: SessionRole, options: HttpOptions, clients: Map<string, Client>): Promise<Client> {
  const session = options.openSession(role);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => {
      clients.set(id, client);
    },
  });
  const client: Client = { role, transport, seenAt: Date.now(), waiting: 0 };
  transport.onclose = () => {
    if (transport.sessionId !== undefined) clients.delete(transport.sessionId);
    session.close("the client left");
  };
  await mcpServer(session, options.version).connect(transport as Parameters<ReturnType<typeof mcpServer>["connect"]>[0]);
  return client;
}

/** Makes room among the clients of one role, never at the cost of one that waits for an answer; false: there is none to be made. */
async function closeIdlest(clients: ReadonlyMap<string, Client>, role: SessionRole): Promise<boolean> {
  const idle = [...clients.values()].filter((client) => client.role === role && client.waiting === 0);
  const [idlest] = idle.sort((a, b) => a.seenAt - b.seenAt);
  await idlest?.transport.close();
  return idlest !== undefined;
}

function roleOf(authorization: string | undefined, tokens: HttpOptions["tokens"]): SessionRole | null {
  const given = /^Bearer (\S+)$/.exec(authorization ?? "")?.[1];
  if (given === undefined) return null;
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  // Equal lengths, and no early end: how much of a token was right does not show in the time.
  const known = Object.entries(tokens) as [SessionRole, string][];
  return known.find(([, token]) => timingSafeEqual(digest(token), digest(given)))?.[0] ?? null;
}

function isLocal(host: string | undefined, bound: string): boolean {
  const name = (host ?? "").replace(/:\d+$/, "");
  return name === bound || name === "localhost" || name === "127.0.0.1" || name === "[::1]";
}

async function readBody(request: IncomingMessage): Promise<{ value: unknown } | "too large" | "no JSON"> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).byteLength;
    if (bytes > longestBody) return "too large";
    chunks.push(chunk as Buffer);
  }
  try {
    return { value: JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown };
  } catch {
    return "no JSON";
  }
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "application/json", connection: "close" });
  response.end(JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null }));
}
