import type { RunState } from "../../core/harness/state.js";
import { situation } from "./conversation.js";

/** What an agent with a work folder of its own is told to do. */
export function agentTask(state: RunState, base: string): string {
  return `# Your task

You are a researcher who improves a program by experiments, on your own, within one session.

${situation(state, base)}

## How

- This folder holds the files of trial ${base}, mcp.json, and this text. What you change here is yours alone: **it counts only
  when you hand it in** with the tool submit_trial of the MCP server \`trialist\`, as whole files (path, content) or as edits
  (path, search, replace) of the session's working copy. edit_files changes that copy without handing it in; rebase starts it
  anew from another trial.
- The MCP server is described in mcp.json. Read the environment and the frontier first (read_environment, read_frontier).
- Every submitted trial is run and measured in a sandbox, without network, by a program that you cannot see or influence. Only
  a better measurement counts, and a promising one is confirmed on fresh seeds. wait_for_trial gives the result.
- Trials are few: think before each one, change one thing at a time, learn from what was tried (read_trial, read_diff), and
  wait for a trial's result before you build on it.
- There is no network here but the MCP server and your model. Requests to your model are counted against the run's budget;
  when that is used up they are refused, and the session ends.
- End when nothing is left that is worth a trial.
`;
}
