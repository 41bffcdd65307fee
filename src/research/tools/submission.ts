import { z } from "zod";
import { readPlan } from "../../core/harness/admission.js";
import type { TimelessCommand } from "../../core/protocol/commands.js";
import type { RunEvent, Violation } from "../../core/protocol/events.js";
import { change } from "./change.js";
import { type ToolContext, ToolProblem } from "./tool.js";

/** What is handed in: a commitment made before any measurement, and the working copy with a last change. */
export const submission = {
  hypothesis: z.string().min(1).max(4000).describe("what you changed and why it should help, in a sentence or two"),
  expected_change: z.number().optional().describe("gain of the first metric that you expect, in its unit; positive is better"),
  responds_to: z.array(z.string()).max(20).optional().describe("trials that you build on or answer, such as t3"),
  ...change,
} as const;

/** The command that hands in the working copy as it is. @throws ToolProblem */
export function submitCommand(
  context: ToolContext,
  input: Omit<z.infer<z.ZodObject<typeof submission>>, "files" | "edits">,
): TimelessCommand {
  const plan = readPlan(input);
  if (Array.isArray(plan)) throw new ToolProblem(plan.map(({ message }) => message).join("\n"));
  const { workbench, session } = context;
  if (session === null) throw new ToolProblem("the baseline is still being calibrated: wait_for_trial t0 first");
  return { type: "submit", by: { session }, base: workbench.base, submission: { ...plan, ...workbench.snapshot() } };
}

/** What became of it: the trial, or why it was refused. */
export function outcomeOf(events: readonly RunEvent[]): { readonly trial: string } | { readonly violations: readonly Violation[] } {
  for (const event of events) {
    if (event.type === "trial.admitted") return { trial: event.data.trial };
    if (event.type === "plan.refused") return { violations: event.data.violations };
  }
  return { violations: [] };
}

export function inWords(violations: readonly Violation[]): string {
  return violations.map(({ path, message }) => (path === null ? message : `${path}: ${message}`)).join("\n");
}
