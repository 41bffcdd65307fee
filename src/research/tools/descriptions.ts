import { z } from "zod";
import type { SessionRole } from "../../core/harness/session-views.js";
import type { ToolDescription } from "../../core/ports/session-model.js";
import { toolsOf } from "./registry.js";
import type { ToolServices } from "./tool.js";

/** The tools of a role as a model is told of them. */
export function toolDescriptions(role: SessionRole, services: ToolServices): readonly ToolDescription[] {
  return toolsOf(role, services).map(({ name, description, input }) => {
    const { $schema: _dialect, ...schema } = z.toJSONSchema(input) as Record<string, unknown>;
    return { name, description, schema };
  });
}
