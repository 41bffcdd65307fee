import { isAbsolute } from "node:path";
import { z } from "zod";

/** An agent as a run keeps it. Its model's settings are kept beside it, under the model's own name. */
export const agentSettings = z.strictObject({
  /** Shell command, run in the work folder. */
  command: z.string().min(1).max(8000),
  /** Name of the model as the run has it: `model:sonnet`. */
  model: z.string().min(1),
  /** Wall limit of one session. */
  wallMs: z.number().int().positive(),
  /** Host folders that it sees read-only at their own paths. */
  mounts: z.array(
    z.string().refine((path) => isAbsolute(path) && !path.split("/").includes(".."), { error: "an absolute path without .." }),
  ),
});
export type AgentSettings = z.infer<typeof agentSettings>;
