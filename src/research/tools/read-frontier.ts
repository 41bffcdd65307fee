import { z } from "zod";
import { frontierView } from "../../core/harness/session-views.js";
import { tool } from "./tool.js";

export const readFrontier = tool({
  name: "read_frontier",
  description: "Where the run stands now: the best, the newest and the best valid trials, the noise, what is open, what budget is left.",
  roles: ["researcher", "reviewer"],
  input: z.object({}),
  run: ({ state, role }) => frontierView(state, role),
});
