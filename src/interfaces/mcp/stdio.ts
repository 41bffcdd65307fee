import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { ToolSession } from "../../app/tool-sessions.js";
import { mcpServer } from "./server.js";

/** Serves one client over standard input and output; resolves when it has left. */
export async function serveStdio(session: ToolSession, version: string): Promise<void> {
  const server = mcpServer(session, version);
  const left = new Promise<void>((resolve) => {
    server.onclose = resolve;
    // The transport does not tell that its input has ended.
    process.stdin.once("end", resolve).once("close", resolve);
  });
  await server.connect(new StdioServerTransport());
  await left;
  session.close("the client left");
  await server.close();
}
