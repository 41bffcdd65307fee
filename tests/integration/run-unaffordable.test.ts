import { afterEach, beforeEach, expect, it } from "vitest";
import { inspectRun } from "../../src/app/inspect.js";
import { Project } from "../../src/app/project.js";
import { commandLine } from "../support/drive.js";
import { Lab, numberPack, proposes, scoring } from "../support/lab.js";

let lab: Lab;
beforeEach(() => {
  lab = new Lab();
  const files = numberPack({ seed: 1, words: [proposes(scoring(1100))] });
  // A pass may use 300 s of CPU: 200 s and 100 s.
  const contract = (files["environment.yaml"] ?? "")
    .replace("limits: { wall: 20 s }", "limits: { wall: 200 s }")
    .replace("run: sh evaluate.sh }", "run: sh evaluate.sh, limits: { wall: 100 s } }");
  lab.write({ ...files, "environment.yaml": contract });
});
afterEach(() => lab.remove());

const started = (...more: string[]) =>
  commandLine(lab, "run", lab.pack, "--researcher", "command:sh answer.sh", "--max-trials", "1", ...more).ended;

it("a cap of CPU time that covers no pass, or no question, is refused before anything is made or measured", async () => {
  for (const [cap, words] of [
    ["299s", "--max-compute: expected a cap that covers one trial: 5 min of CPU time, the limits of its stages; found 4 min 59 s"],
    ["119s", "--max-compute: expected a cap that covers one question: 2 min of CPU time, the most that it can use; found 1 min 59 s"],
  ] as const) {
    const { code, stderr } = await started("--max-compute", cap);
    expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
  }
  expect(new Project(lab.project).runNames()).toEqual([]);
});

it("one that covers a trial to the last is enough to begin with, and the run ends when nothing is left for another", async () => {
  const ended = await started("--max-compute", "400s", "--name", "enough");
  expect(ended.code, ended.stderr).toBe(0);
  const { state, close } = inspectRun(new Project(lab.project), "enough");
  close();
  expect([state.phase, state.searchTrialsEnded]).toEqual(["finished", 1]);
});
