import { type Trial, trialNamed } from "../../core/harness/state.js";
import { type ToolContext, ToolProblem } from "./tool.js";

/** The trial that a caller named. @throws ToolProblem when this run has none of that name */
export function namedTrial({ state }: Pick<ToolContext, "state">, id: string): Trial {
  const trial = trialNamed(state, id);
  if (trial !== null) return trial;
  throw new ToolProblem(`this run has no trial ${JSON.stringify(id.slice(0, 40))}; read_frontier lists some`);
}
