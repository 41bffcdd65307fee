import { configurationOf } from "../core/harness/state.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { Gate } from "../core/protocol/gate.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import { copiesOf } from "../research/gate/copies.js";
import type { Host } from "./environments.js";
import { inspectRun } from "./inspect.js";
import { rememberGate } from "./known-gate.js";
import type { Project } from "./project.js";

interface MeasuredGate {
  readonly configuration: RunConfiguration;
  readonly gate: Gate;
}

/** What a finished run of copies says of the rule, kept for the runs to come. */
export async function concludeGate(project: Project, host: Host, run: string, note: (line: string) => void): Promise<MeasuredGate> {
  const { state, close } = inspectRun(project, run);
  try {
    if (state.phase !== "finished")
      throw new RefusedError({
        expected: "a run of copies that came to its end",
        found: `${run}, which is ${state.phase}: ${state.reason}`,
      });
    const configuration = configurationOf(state);
    const gate: Gate = { run, measuredAt: state.lastAt, copies: copiesOf(state), resampled: null, planted: [] };
    await rememberGate(host, configuration, gate, note);
    return { configuration, gate };
  } finally {
    close();
  }
}
