import type { FrozenEnvironment } from "../adapters/environments/freeze.js";
import { configurationOf } from "../core/harness/state.js";
import { RefusedError } from "../core/protocol/errors.js";
import type { Gate } from "../core/protocol/gate.js";
import type { RecordSet } from "../core/protocol/measurement.js";
import type { RunConfiguration } from "../core/protocol/run.js";
import { measuredGate } from "../research/gate/measured-gate.js";
import type { Host } from "./environments.js";
import { inspectRun } from "./inspect.js";
import { rememberGate } from "./known-gate.js";
import type { Project } from "./project.js";

interface Concluded {
  readonly configuration: RunConfiguration;
  readonly gate: Gate;
}

/** What a finished run of copies says of the rule, kept for the runs to come. `planted` null: gains that calibration suggests. */
export async function concludeGate(
  project: Project,
  host: Host,
  { run, frozen }: { readonly run: string; readonly frozen: FrozenEnvironment },
  { planted, note }: { readonly planted: readonly number[] | null; readonly note: (line: string) => void },
): Promise<Concluded> {
  const { state, ledger, close } = inspectRun(project, run);
  try {
    if (state.phase !== "finished")
      throw new RefusedError({
        expected: "a run of copies that came to its end",
        found: `${run}, which is ${state.phase}: ${state.reason}`,
      });
    const configuration = configurationOf(state);
    const read = (digest: string): RecordSet => JSON.parse(new TextDecoder().decode(ledger.blob(digest))) as RecordSet;
    const gate = measuredGate(state, ({ blob }) => read(blob), planted);
    await rememberGate(host, frozen, configuration, { measured: gate, note });
    return { configuration, gate };
  } finally {
    close();
  }
}
