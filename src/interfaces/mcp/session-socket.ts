import type { ServeTools } from "../../core/ports/session-agent.js";
import { serveHttp } from "./http.js";

/** Serves one open session to its agent on a Unix socket: it may connect as often as it likes, and the session stays the same. */
export function sessionSocket(version: string): ServeTools {
  return (tools, path, token) =>
    serveHttp({
      listen: { path },
      tokens: { researcher: token },
      version,
      openSession: () => ({
        role: "researcher",
        tools: tools.tools,
        call: (name, input, signal) => tools.call(name, input, signal),
        close: () => undefined,
      }),
    });
}
