import { z } from "zod";
import { configurationOf } from "../../core/harness/state.js";
import { ToolProblem, tool } from "./tool.js";

export const readKnowledge = tool({
  name: "read_knowledge",
  description: "One of the environment's knowledge files, which read_environment names.",
  roles: ["researcher", "reviewer"],
  input: z.object({ path: z.string().describe("as read_environment names it") }),
  run({ state }, { path }) {
    const { knowledge } = configurationOf(state).environment;
    const found = knowledge.find((each) => each.path === path);
    if (found !== undefined) return found;
    throw new ToolProblem(
      `there is no knowledge file ${JSON.stringify(path)}; known: ${knowledge.map((each) => each.path).join(", ") || "none"}`,
    );
  },
});
