import type { SessionRole } from "../../core/harness/session-views.js";
import { checkCandidate } from "./check-candidate.js";
import { editFiles } from "./edit-files.js";
import { readDiff } from "./read-diff.js";
import { readEnvironment } from "./read-environment.js";
import { readFiles } from "./read-files.js";
import { readFrontier } from "./read-frontier.js";
import { readKnowledge } from "./read-knowledge.js";
import { readTrial } from "./read-trial.js";
import { rebase } from "./rebase.js";
import { runPreflight } from "./run-preflight.js";
import { searchFiles } from "./search-files.js";
import { submitTrial } from "./submit-trial.js";
import type { Tool, ToolServices } from "./tool.js";
import { waitForTrial } from "./wait-for-trial.js";
import { webSearch } from "./web-search.js";

/** Every tool of a session: one file and a line here. */
export const tools = [
  readEnvironment,
  readKnowledge,
  readFrontier,
  readTrial,
  readFiles,
  searchFiles,
  readDiff,
  rebase,
  editFiles,
  checkCandidate,
  runPreflight,
  webSearch,
  submitTrial,
  waitForTrial,
] as unknown as readonly Tool[];

export function toolsOf(role: SessionRole, services: ToolServices): readonly Tool[] {
  return tools.filter((tool) => tool.roles.includes(role) && (tool.isAvailable?.(services) ?? true));
}
