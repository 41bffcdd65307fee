import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { ToolSession } from "../../app/tool-sessions.js";

const researcher = `You are a researcher of trialist: you improve a program by experiments. Read the environment and the frontier first.
Every submit_trial is measured in a sandbox by an evaluator that you cannot see or influence, and costs one trial of the budget.
A promising trial is confirmed on fresh seeds before it counts. wait_for_trial gives a result; read_frontier says what is left.`;

const reviewer = `You review a run of trialist, which improves a program by experiments: you see its environment, its trials with what was
measured, and their files and differences, but not what they were meant to show. You change nothing. wait_for_trial waits for a result.`;

/** One client's server: the tools of its session, one for one. What a client sends wrong comes back as an error result. */
export function mcpServer(session: ToolSession, version: string): Server {
  const server = new Server(
    { name: "trialist", version },
    { capabilities: { tools: {} }, instructions: session.role === "reviewer" ? reviewer : researcher },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: session.tools.map(({ name, description, schema }) => ({
      name,
      description,
      inputSchema: { ...schema, type: "object" as const },
    })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const { text, isError } = await session.call(params.name, params.arguments ?? {}, signal);
    return { content: [{ type: "text" as const, text }], isError };
  });
  return server;
}
