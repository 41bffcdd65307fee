import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commandLine } from "../support/drive.js";
import { Lab, numberPack, proposes, scoring } from "../support/lab.js";

const seed = 9;
let lab: Lab;
beforeEach(() => {
  lab = new Lab();
  // None of them is better than the baseline, which scores about 100.
  lab.write(numberPack({ seed, words: Array.from({ length: 30 }, (_, index) => proposes(scoring(-1000 - index))), rule: "any" }));
});
afterEach(() => lab.remove());

const start = (...words: string[]): string[] => {
  const options = ["--seed", String(seed), "--drafts", "200", "--researcher", "command:sh answer.sh", "--max-trials", "30"];
  return ["run", lab.pack, "--name", "run", ...options, ...words];
};

describe("trialist run --until-saturated", () => {
  it("ends when another keep is as unlikely as that, says so, and can be extended without", async () => {
    const { code, stdout } = await commandLine(lab, ...start("--until-saturated", "0.25", "--json")).ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      state: "finished",
      reason: expect.stringMatching(/^saturation: the chance that the next 10 trials bring a keep is [\d.]+ %/),
      progress: { done: 20, cap: 30 },
      saturation: { chance: expect.closeTo(0.2, 1), horizon: 10, trials: 20, keeps: 0, endsAt: 0.25 },
    });
    const status = await commandLine(lab, "status", "run").ended;
    expect(status.stdout).toMatch(/Chance {5}\d+ % that 10 more trials bring a visible gain/);
    const again = await commandLine(lab, "extend", "run", "--reason", "more", "--max-trials", "21").ended;
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("saturation: the chance") });
    const without = ["--until-saturated", "none", "--max-trials", "21", "--reason", "more"];
    expect(await commandLine(lab, "extend", "run", ...without).ended).toMatchObject({ code: 0 });
  });

  it("takes a probability alone", async () => {
    const refused = await commandLine(lab, ...start("--until-saturated", "5")).ended;
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("a probability between 0 and 1") });
  });
});
