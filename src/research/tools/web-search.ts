import { z } from "zod";
import { ToolProblem, tool } from "./tool.js";

export const webSearch = tool({
  name: "web_search",
  description: "Searches the web; what it answers is recorded. There only where the operator has configured it.",
  roles: ["researcher"],
  input: z.object({ query: z.string().min(1).max(400) }),
  isAvailable: ({ webSearch }) => webSearch !== null,
  async run({ services }, { query }, signal) {
    if (services.webSearch === null) throw new ToolProblem("no web search is configured");
    return { results: await services.webSearch(query, signal) };
  },
});
