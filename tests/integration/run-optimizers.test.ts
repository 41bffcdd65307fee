import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { replayRecorded } from "../../src/app/replay.js";
import { secretsOf } from "../../src/app/secrets.js";
import { parseEvent, type StoredRunEvent } from "../../src/core/protocol/events.js";
import { SharingLab } from "../support/cheaters.js";
import { commandLine } from "../support/drive.js";
import { of } from "../support/events.js";

/** Real Optuna in a real sandbox, on an environment with real data: the example of the guide. */
const lab = new SharingLab();
cpSync(join(import.meta.dirname, "..", "..", "examples", "researcher"), lab.pack, { recursive: true });
afterEach(() => lab.remove());

async function run(name: string, ...words: string[]): Promise<StoredRunEvent[]> {
  const given = ["run", lab.pack, "--name", name, "--drafts", "1", "--debug-probability", "0", "--confirmations", "1", ...words];
  const { code, stderr } = await commandLine(lab, ...given).ended;
  expect([code, stderr]).toEqual([0, expect.anything()]);
  const { ledger, close } = inspectRun(new Project(lab.project), name);
  const events = [...ledger.read()].map(parseEvent);
  close();
  return events;
}

const hypotheses = (events: readonly StoredRunEvent[]): string[] => of(events, "plan.proposed").map(({ data }) => data.hypothesis);

describe("an optimizer as researcher", () => {
  it("chooses declared numbers, learns from all that was measured of the same program, and comes out the same again", async () => {
    const events = await run("tpe", "--researcher", "optuna:tpe", "--max-trials", "7");
    // From the fifth point on, Tree-structured Parzen estimators choose; each answer names how many points it knew.
    expect(
      hypotheses(events).map((text) => /tpe over (\d+) measured points .* neighbours = \d+, sharpness = [\d.]+$/.exec(text)?.[1]),
    ).toEqual(["1", "2", "3", "4", "5", "6", "7"]);
    expect(of(events, "call.refused")).toEqual([]);
    const again = await run("again", "--researcher", "optuna:tpe", "--max-trials", "7");
    expect(hypotheses(again)).toEqual(hypotheses(events));
    expect(await replayRecorded(new Project(lab.project), "tpe", null, secretsOf({}))).toMatchObject({ difference: null });

    const turns = await run(
      "turns",
      "--researcher",
      "optuna:cmaes",
      "--turns",
      "neighbours",
      "--turns",
      "optuna:random",
      "--max-trials",
      "5",
    );
    const asked = of(turns, "call.requested").map(({ data }) => data.researcher);
    expect(asked).toEqual(["optuna:cmaes", "neighbours", "optuna:random", "optuna:cmaes", "neighbours"]);
    expect(hypotheses(turns)[3]).toMatch(/^cmaes over \d+ measured points/);

    const undeclared = readFileSync(join(lab.pack, "environment.yaml"), "utf8").replace(/ {2}parameters:[\s\S]*?(?=baseline)/, "");
    lab.write({ "environment.yaml": undeclared });
    const refused = await commandLine(lab, "run", lab.pack, "--researcher", "optuna:tpe").ended;
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("surface.parameters")]);
    const unknown = await commandLine(lab, "run", lab.pack, "--researcher", "optuna:magic").ended;
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining("optuna:cmaes")]);
  });
});
