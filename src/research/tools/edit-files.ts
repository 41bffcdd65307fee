import { z } from "zod";
import { applyChange, change } from "./change.js";
import { tool } from "./tool.js";

export const editFiles = tool({
  name: "edit_files",
  description: "Changes your working copy: whole files, or replacements of passages that occur exactly once. Nothing is measured yet.",
  roles: ["researcher"],
  input: z.object(change),
  run(context, input) {
    applyChange(context, input);
    return { files: context.workbench.files() };
  },
});
