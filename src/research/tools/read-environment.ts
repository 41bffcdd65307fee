import { z } from "zod";
import { configurationOf } from "../../core/harness/state.js";
import { tool } from "./tool.js";

export const readEnvironment = tool({
  name: "read_environment",
  description: "What is studied and how it is measured: description, editable files, metrics, gates, limits, promotion rule.",
  roles: ["researcher", "reviewer"],
  input: z.object({}),
  run({ state }) {
    const { environment, promotion, budget } = configurationOf(state);
    const { name, description, surface, metrics, gates, noise, knowledge } = environment;
    const stages = environment.stages
      .filter((stage) => stage.trust === "candidate")
      .map((stage) => ({ name: stage.name, run: stage.run, outputs: stage.outputs, limits: stage.limits }));
    return { name, description, surface, metrics, gates, noise, promotion, stages, budget, knowledge: knowledge.map(({ path }) => path) };
  },
});
