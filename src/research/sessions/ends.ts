import { isRunning } from "../../core/harness/due.js";
import { configurationOf, type RunState } from "../../core/harness/state.js";
import type { ResearcherFailedError } from "../../core/ports/researcher.js";
import type { DeskHost } from "./desk.js";

/** Why a session came to its end. */
export interface End {
  readonly reason: string;
  /** Cut off: another session goes on from where it stood. */
  readonly interrupted: boolean;
}

/** The end of sessions of a run that is over for them, or that somebody stopped for now; null while it searches. */
export function haltOf(state: RunState): End | null {
  const { phase } = state;
  return phase === "searching" ? null : { reason: `the run is ${phase}`, interrupted: !isRunning(state) };
}

/** Suspends the run for what would only come again. */
export function suspended(host: DeskHost, error: ResearcherFailedError): End {
  const { run } = configurationOf(host.state);
  const reason = error.message.slice(0, 4000);
  host.dispatch({ type: "suspend", reason, todo: `${error.todo} Then \`trialist resume ${run}\`.`.trim().slice(0, 2000) });
  return { reason, interrupted: true };
}
