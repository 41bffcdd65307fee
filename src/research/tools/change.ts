import { z } from "zod";
import { isPlainPath } from "../../core/harness/admission.js";
import { configurationOf } from "../../core/harness/state.js";
import { byteLength } from "../roles/prompt.js";
import { type ToolContext, ToolProblem } from "./tool.js";

/** How tools are given a change of the working copy. */
export const change = {
  files: z
    .array(z.object({ path: z.string(), content: z.string().nullable().describe("the whole new text; null deletes the file") }))
    .max(200)
    .optional(),
  edits: z
    .array(z.object({ path: z.string(), search: z.string().describe("a passage that occurs exactly once"), replace: z.string() }))
    .max(200)
    .optional(),
} as const;

type Change = z.infer<z.ZodObject<typeof change>>;

/** Applies a change to the working copy, all of it or nothing. @throws ToolProblem that says what is wrong */
export function applyChange({ workbench, state }: Pick<ToolContext, "workbench" | "state">, { files = [], edits = [] }: Change): void {
  const outside = [...files, ...edits].find(({ path }) => !isPlainPath(path));
  if (outside !== undefined)
    throw new ToolProblem(`${JSON.stringify(outside.path)}: a path must be relative, with forward slashes, without . or .. parts`);
  const binary = [...files.map(({ content }) => content), ...edits.map(({ replace }) => replace)].some((text) => text?.includes("\u0000"));
  if (binary) throw new ToolProblem("a file's text must not hold NUL characters");
  const { maxBytes } = configurationOf(state).environment.surface;
  const bytes = [...files.map(({ content }) => content ?? ""), ...edits.map(({ replace }) => replace)].reduce(
    (sum, text) => sum + byteLength(text),
    0,
  );
  // Before it is stored: a trial could not hold it either.
  if (bytes > maxBytes) throw new ToolProblem(`the change holds ${bytes} bytes, the editable files may hold ${maxBytes}`);
  const wrong = workbench.change(new Map(files.map(({ path, content }) => [path, content])), edits);
  if (wrong !== null) throw new ToolProblem(wrong.map(({ path, message }) => `${path ?? ""}: ${message}`).join("\n"));
}
