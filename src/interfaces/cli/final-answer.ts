import { attributionBeside } from "../../app/attribution.js";
import { inspectRun } from "../../app/inspect.js";
import type { Project } from "../../app/project.js";
import { statusText } from "../../research/report/status-text.js";
import { summarize } from "../../research/report/summary.js";
import type { Terminal } from "./terminal.js";

/** The answer that a person wants in ten seconds: the same that `trialist status` opens with. */
export async function finalAnswer(project: Project, name: string, terminal: Terminal): Promise<void> {
  const attribution = await attributionBeside(project, name, (text) => terminal.note(text));
  const inspected = inspectRun(project, name);
  try {
    const { ledger, state } = inspected;
    // An imported run goes by its name here.
    const summary = { ...summarize(state, Date.now(), { blob: (digest) => ledger.blob(digest), attribution }), run: name };
    terminal.say(statusText(summary, terminal.paint));
    terminal.data(summary);
  } finally {
    inspected.close();
  }
}
