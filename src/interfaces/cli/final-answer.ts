import { inspectRun } from "../../app/inspect.js";
import type { Project } from "../../app/project.js";
import { statusText } from "../../research/report/status-text.js";
import { summarize } from "../../research/report/summary.js";
import type { Terminal } from "./terminal.js";

/** The answer that a person wants in ten seconds: the same that `trialist status` opens with. */
export function finalAnswer(project: Project, name: string, terminal: Terminal): void {
  const inspected = inspectRun(project, name);
  try {
    const { ledger, state } = inspected;
    // An imported run goes by its name here.
    const summary = { ...summarize(state, Date.now(), { blob: (digest) => ledger.blob(digest) }), run: name };
    terminal.say(statusText(summary, terminal.paint));
    terminal.data(summary);
  } finally {
    inspected.close();
  }
}
