import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { askAnswers, completeAnswers, type InitAnswers, type InitResult, initEnvironment } from "../../src/adapters/environments/init.js";
import { defaultPattern } from "../../src/adapters/environments/init-text.js";
import { loadEnvironment } from "../../src/adapters/environments/load.js";
import { fill, temporaryFolder } from "./environment-fixture.js";

const options = { force: false, pathVariable: "/usr/bin:/bin" };

async function init(folder: string, given: Partial<InitAnswers>, more: Partial<typeof options> = {}): Promise<InitResult> {
  return initEnvironment(folder, await completeAnswers(folder, { metric: "score", ...given }), { ...options, ...more });
}

const scripts = [
  ["train.py", "print('score:', 0.5)\n", "python3 train.py"],
  ["train.sh", "#!/bin/sh\necho score=0.5\n", "sh train.sh"],
  ["train.sh", "#!/usr/bin/env bash\necho score=0.5\n", "bash train.sh"],
  ["train.mjs", "console.log(JSON.stringify({ score: 0.5 }));\n", "node train.mjs"],
  ["my train (1).py", "print(0.5)\n", "python3 'my train (1).py'"],
] as const;

describe.each([true, false])("a folder with one script, in git: %s", (git) => {
  test.each(scripts)("%s: %j", async (name, text, run) => {
    const folder = await fill(await temporaryFolder(), { [name]: text });
    if (git) execFileSync("git", ["init", "-q", folder]);
    const result = await init(folder, { direction: "maximize" });
    expect((await readdir(folder)).sort()).toEqual([...(git ? [".git", ".gitignore"] : []), "environment.yaml", name].sort());
    const { environment, baseline, context } = await loadEnvironment(folder);
    expect(environment).toEqual(result.environment.environment);
    expect(environment.stages).toHaveLength(1);
    expect(environment.stages[0]).toMatchObject({ run, trust: "candidate" });
    expect(environment.metrics[0]).toMatchObject({ name: "score", direction: "maximize", from: { kind: "stdout", stage: "run" } });
    expect(environment.promotion).toMatchObject({ rule: "threshold", minimumGain: 0 });
    expect(baseline.map((file) => file.path)).toEqual([name]);
    expect(context.map((file) => file.path)).toEqual(git ? [".gitignore"] : []);
  });
});

test("git's ignore file gains one line, once, and keeps what it had", async () => {
  const folder = await fill(await temporaryFolder(), { "a.sh": "echo 1", ".gitignore": "*.log" });
  execFileSync("git", ["init", "-q", folder]);
  await init(folder, {});
  await init(folder, {}, { force: true });
  expect(await readFile(join(folder, ".gitignore"), "utf8")).toBe("*.log\n.trialist/\n");
});

test("a file that is there is kept, unless forced", async () => {
  const folder = await fill(await temporaryFolder(), { "a.sh": "echo 1", "environment.yaml": "mine" });
  await expect(init(folder, {})).rejects.toThrow(/--force/);
  expect(await readFile(join(folder, "environment.yaml"), "utf8")).toBe("mine");
  await init(folder, {}, { force: true });
  expect(await readFile(join(folder, "environment.yaml"), "utf8")).toContain("schema: trialist/environment@1");
});

describe("what cannot become an environment", () => {
  test.each([
    [{ edit: ["b.sh"] }, /no b\.sh.*did you mean `a\.sh`/],
    [{ edit: ["../a.sh"] }, /leads out of the folder/],
    [{ edit: ["/etc/passwd"] }, /leads out of the folder/],
    [{ metric: "my score" }, /metrics\[0\]\.name/],
    [{ wall: "10" }, /did you mean "10 s"/],
    [{ pattern: "score" }, /no group/],
  ] as const)("%j", async (given, message) => {
    const folder = await fill(await temporaryFolder(), { "a.sh": "echo 1" });
    await expect(init(folder, given as Partial<InitAnswers>)).rejects.toThrow(message);
    expect(await readdir(folder)).toEqual(["a.sh"]);
  });

  test("a folder that suggests nothing names the missing flags", async () => {
    await expect(completeAnswers(await temporaryFolder(), {})).rejects.toThrow(/--edit FILE, --run COMMAND, --metric NAME/);
    const two = await fill(await temporaryFolder(), { "a.py": "", "b.py": "" });
    await expect(completeAnswers(two, { metric: "x" })).rejects.toThrow(/--edit FILE, --run COMMAND/);
  });
});

test("asking draws on what the folder suggests, and on what was given", async () => {
  const folder = await fill(await temporaryFolder(), { "fit.py": "" });
  const asked: [string, string][] = [];
  const answers = await askAnswers(
    folder,
    { metric: "val_loss" },
    {
      text: async (question, initial) => {
        asked.push([question, initial]);
        return initial;
      },
      choose: async (question, _, initial) => {
        asked.push([question, initial]);
        return initial;
      },
    },
  );
  expect(answers).toMatchObject({ edit: ["fit.py"], run: "python3 fit.py", metric: "val_loss", direction: "minimize" });
  expect(asked.map(([, initial]) => initial)).toEqual(["fit.py", "python3 fit.py", "minimize"]);
});

describe("the program of a run command", () => {
  test("python becomes the system's python3, where the system has no python", async () => {
    const folder = await fill(await temporaryFolder(), {
      "a.py": "import json, os.path, helper, surely_not_installed_anywhere\n",
      "helper.py": "",
    });
    const result = await init(folder, { edit: ["a.py"], run: "python a.py" });
    expect(result.environment.environment.stages[0]?.run).toMatch(/^python3? a\.py$/);
    expect(result.notes.join()).toMatch(/no surely_not_installed_anywhere:/);
  });

  test("a program outside /usr brings its prefix", async () => {
    const prefix = await temporaryFolder();
    await mkdir(join(prefix, "bin"));
    await writeFile(join(prefix, "bin/node"), "#!/bin/sh\n");
    await chmod(join(prefix, "bin/node"), 0o755);
    const folder = await fill(await temporaryFolder(), { "a.js": "console.log(1)" });
    const result = await init(folder, {}, { pathVariable: `${join(prefix, "bin")}:/usr/bin` });
    expect(result.environment.environment.runtime).toEqual({ kind: "prefix", use: prefix });
    expect(result.notes.join()).toContain("not frozen");
  });

  test("a venv in the folder is used by its prefix, and is no part of the workspace", async () => {
    const folder = await fill(await temporaryFolder(), { "a.py": "print(1)" });
    execFileSync("/usr/bin/python3", ["-m", "venv", "--without-pip", join(folder, ".venv")]);
    const { environment } = await init(folder, { run: ".venv/bin/python a.py" });
    expect(environment.environment.runtime).toEqual({ kind: "prefix", use: join(folder, ".venv") });
    expect(environment.environment.stages[0]?.run).toBe("python a.py");
    expect(environment.context).toEqual([]);
  });
});

describe("the number is found in what programs print", () => {
  const find = (text: string): string | undefined => [...text.matchAll(new RegExp(defaultPattern("val_score"), "gm"))].at(-1)?.[1];
  test.each([
    ["val_score: 0.93", "0.93"],
    ["val_score=0.93", "0.93"],
    ["epoch 3 val_score: -1.5e-3, loss: 2", "-1.5e-3"],
    ['{"val_score": 12, "loss": 3}', "12"],
    ["Val score = 7", "7"],
    ["0.25", "0.25"],
    ["  42  \r\n", "42"],
    ["val_score: 1\nval_score: 2\n", "2"],
    ["val_score: .5.", ".5"],
    ["val_score: nan", "nan"],
    ["val_score: 0.9\nval_score: inf", "inf"],
    ["100 epochs", undefined],
    ["interval_score_total: 3", undefined],
    ["val_scores: 3", undefined],
    ["val_score improved", undefined],
  ])("%j → %s", (text, expected) => {
    expect(find(text)).toBe(expected);
  });
});
