import { execa } from "execa";
import { ToolProblem, type ToolServices } from "../research/tools/tool.js";

/** Longest answer of a search, in characters. */
const longest = 40_000;

/** The operator's own search command: the query on standard input, what was found on standard output. It runs on the host, not in the sandbox. */
export function webSearchOf(command: string | null): ToolServices["webSearch"] {
  if (command === null) return null;
  return async (query, signal) => {
    try {
      const { stdout } = await execa("sh", ["-c", command], {
        input: query,
        timeout: 60_000,
        cancelSignal: signal,
        maxBuffer: 4 * 2 ** 20,
      });
      return stdout.slice(0, longest);
    } catch (cause) {
      signal.throwIfAborted();
      const code =
        typeof cause === "object" && cause !== null && "exitCode" in cause ? String(cause.exitCode ?? "no exit code") : "unknown";
      throw new ToolProblem(`the web search failed (${code}): try without it`);
    }
  };
}
