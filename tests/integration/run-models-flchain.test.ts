import { afterEach, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { replayRecorded } from "../../src/app/replay.js";
import { secretsOf } from "../../src/app/secrets.js";
import { parseEvent, type StoredRunEvent } from "../../src/core/protocol/events.js";
import { boxed, SharingLab } from "../support/cheaters.js";
import { commandLine } from "../support/drive.js";
import { of } from "../support/events.js";
import { answer, type ModelServer, startModelServer } from "../support/model-server.js";

const lab = new SharingLab();
let server: ModelServer | null = null;
afterEach(async () => {
  await server?.close();
  lab.remove();
});

const trials = 3;

/** A run of flchain, brief enough for a test; its events and what it recorded. */
async function run(name: string, ...more: string[]): Promise<{ events: StoredRunEvent[]; outputs: string[]; spent: unknown }> {
  const words = ["run", lab.pack, "--name", name, "--seed", "3", "--max-trials", String(trials), "--confirmations", "2", ...more];
  const { code, stderr } = await commandLine(lab, ...words).ended;
  expect([code, stderr]).toEqual([0, expect.anything()]);
  const { ledger, state, close } = inspectRun(new Project(lab.project), name);
  const events = [...ledger.read()].map(parseEvent);
  const rounds = events.flatMap((event) => (event.type === "call.answered" || event.type === "call.refused" ? [event.data.output] : []));
  const outputs = rounds.flatMap((output) => (output === null ? [] : [Buffer.from(ledger.blob(output.blob)).toString("utf8")]));
  const { trials: used, costUsd } = state.budget.spent;
  close();
  return { events, outputs, spent: { trials: used, costUsd } };
}

/** What a run is, beside who answered: trials, verdicts, leaders. */
function found(events: readonly StoredRunEvent[]): unknown[] {
  const ends = of(events, "trial.ended").map(({ data }) => ({ ...data, reason: "" }));
  return [...ends, ...of(events, "leader.changed").map(({ data }) => data), ...of(events, "plan.proposed").map(({ data }) => data)];
}

describe("flchain", () => {
  it("ends the same whether its playbook proposes, or a language model that says the same over HTTP", async () => {
    const pack = boxed("flchain");
    lab.write({ ...pack, "environment.yaml": (pack["environment.yaml"] ?? "").replace("calibrate: 5", "calibrate: 2") });
    const playbook = await run("playbook", "--researcher", "reference");
    server = await startModelServer((_request, index) => answer(playbook.outputs[index] ?? ""));
    const url = `${server.url}/v1`;
    const model = await run("model", "--researcher", "openai-compatible", "--model", "m", "--base-url", url, "--allow-unknown-price");
    expect(found(model.events)).toEqual(found(playbook.events));
    expect(model.spent).toEqual(playbook.spent);
    expect(server.requests).toHaveLength(playbook.outputs.length);
    for (const name of ["playbook", "model"])
      expect(await replayRecorded(new Project(lab.project), name, null, secretsOf({}))).toMatchObject({
        difference: null,
        taken: 0,
        otherViews: 0,
      });
  });
});
