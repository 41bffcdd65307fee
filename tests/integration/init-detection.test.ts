import { execFileSync } from "node:child_process";
import { mkdir, readFile, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { askAnswers, completeAnswers, initEnvironment } from "../../src/adapters/environments/init.js";
import { fill, temporaryFolder } from "./environment-fixture.js";
import { commit, makeShape, type Shape } from "./init-shapes.js";

const options = { force: false, pathVariable: "/usr/bin:/bin" };

describe("a repository says by itself what it is about", () => {
  const expected = {
    tabular: {
      edit: ["train.py"],
      run: ".venv/bin/python train.py",
      metric: "val.mse",
      metricFile: "results/metrics.json",
      direction: "minimize",
      mounts: [{ source: "data", target: "data", why: "a source names it and git ignores it" }],
    },
    packaged: {
      edit: ["scripts/train.py", "src/loop/model.py", "configs/base.yaml"],
      run: "PYTHONPATH=src python3 scripts/train.py",
      metric: "val_loss",
      direction: "minimize",
      mounts: [],
    },
    script: { edit: ["lib/sort.js"], run: "node bench/sort.js --rounds 3", metric: "comparisons_score", direction: "maximize", mounts: [] },
  } satisfies Record<Shape, unknown>;

  test.each(["tabular", "packaged", "script"] as const)("%s", async (shape) => {
    const folder = await makeShape(shape);
    const answers = await completeAnswers(folder, {});
    expect(answers).toMatchObject(expected[shape]);
    // Every guess says why.
    const reasons = answers.reasons?.join("\n") ?? "";
    for (const word of ["may be edited: ", "run: ", "metric: ", "direction: "]) expect(reasons).toContain(word);
    const { environment } = await initEnvironment(folder, { ...answers, name: shape }, options);
    expect(environment.environment.surface.editable).toEqual(expected[shape].edit);
    const kept = environment.files.map((file) => file.path);
    expect(kept.filter((path) => /^(data|\.venv|results|node_modules)\//.test(path))).toEqual([]);
  });

  test("what was given is taken; the rest follows from it", async () => {
    const folder = await makeShape("packaged");
    const answers = await completeAnswers(folder, { edit: ["configs/*.yaml", "src/**"], metric: "train_loss" });
    expect(answers).toMatchObject({ edit: ["configs/*.yaml", "src/**"], metric: "train_loss", direction: "minimize" });
    const { environment } = await initEnvironment(folder, answers, options);
    expect(environment.environment.surface.editable).toEqual(["configs/*.yaml", "src/**"]);
    expect(environment.baseline.map((file) => file.path)).toContain("src/loop/evaluate.py");
  });
});

test("one file that may be edited is run when it is a program, and else what imports it", async () => {
  const folder = await makeShape("script");
  expect(await completeAnswers(folder, { edit: ["lib/sort.js"] })).toMatchObject({ run: "node bench/sort.js --rounds 3" });
  expect(await completeAnswers(folder, { edit: ["lint.js"], metric: "x" })).toMatchObject({ run: "node lint.js" });
});

describe("where a folder does not say it clearly, the flags are named with what was found", () => {
  test("two programs that are alike", async () => {
    const folder = await fill(await temporaryFolder(), { "train_a.py": "print('score:', 1)\n", "train_b.py": "print('score:', 2)\n" });
    await expect(completeAnswers(folder, {})).rejects.toThrow(
      /--edit FILE, --run COMMAND.*programs that may be meant: train_a\.py \(named like .*\), train_b\.py/,
    );
  });

  test("two numbers that are alike", async () => {
    const folder = await fill(await temporaryFolder(), { "train.py": "print(f'accuracy: {a}')\nprint(f'f1: {b}')\n" });
    await expect(completeAnswers(folder, {})).rejects.toThrow(
      /nothing for --metric NAME; numbers that it seems to report: f1 \(train\.py prints it\), accuracy/,
    );
  });

  test("a value with its format is no number of its own", async () => {
    const line = "print(f'epoch {epoch} val_loss: {loss:.4f} val_accuracy: {accuracy:.4f}')\n";
    const folder = await fill(await temporaryFolder(), { "train.py": line });
    await expect(completeAnswers(folder, {})).rejects.toThrow(
      /that it seems to report: val_accuracy \(train\.py prints it\), val_loss \(train\.py prints it\)\. For example/,
    );
  });

  test("a person is asked, with the reason in the question", async () => {
    const folder = await makeShape("tabular");
    const asked: [string, string][] = [];
    const answers = await askAnswers(
      folder,
      {},
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
    expect(answers).toMatchObject({
      edit: ["train.py"],
      run: ".venv/bin/python train.py",
      metric: "val.mse",
      metricFile: "results/metrics.json",
    });
    expect(asked.map(([question]) => question).join("\n")).toMatch(
      /suggested: the script[\s\S]*named like a program[\s\S]*writes it to results[\s\S]*Bind data read-only\? \(a source names it/,
    );
  });
});

describe("numbers that programs print", () => {
  test.each([
    [`print(f"step {i}: train loss {l['train']:.4f}, val loss {l['val']:.4f}")`, "val_loss"],
    ['print("Test accuracy: %.3f" % accuracy)', "test_accuracy"],
    ['print("accuracy:", accuracy)', "accuracy"],
    ['print("epoch", epoch, "score =", score)', "score"],
    ["print(json.dumps({'epoch': 3, 'val': {'f1': f1}}))", "val.f1"],
    ["report = {'bleu': 1}\nreport['epoch'] = 3\nprint(json.dumps(report))", "bleu"],
  ])("%s", async (line, metric) => {
    const folder = await fill(await temporaryFolder(), { "train.py": `${line}\n` });
    expect((await completeAnswers(folder, {})).metric).toBe(metric);
  });

  test.each([
    ["console.log(`$" + "{name}: $" + "{ops} done, ops_per_sec: $" + "{ops}`);", "ops_per_sec"],
    ['process.stdout.write("latency_ms=" + ms + "\\n");', "latency_ms"],
    ["console.log(JSON.stringify({ pairs_per_second: Number(rate.toFixed(1)), rounds: all.length }));", "pairs_per_second"],
  ])("%s", async (line, metric) => {
    const folder = await fill(await temporaryFolder(), { "bench.js": `${line}\n` });
    expect((await completeAnswers(folder, {})).metric).toBe(metric);
  });
});

test("links and folders that lead outside, and paths in the sources, are bound read-only", async () => {
  const outside = await fill(await temporaryFolder(), { "big/a.bin": "x", "other/b.csv": "y" });
  const folder = await fill(await temporaryFolder(), {
    "train.py": `rows = open("inputs/a.bin").read()\nmore = open("${join(outside, "other")}/b.csv").read()\nprint("score:", 1)\n`,
  });
  await symlink(join(outside, "big"), join(folder, "inputs"));
  commit(folder);
  const answers = await completeAnswers(folder, {});
  expect(answers.mounts).toMatchObject([
    { source: join(outside, "big"), target: "inputs" },
    { source: join(outside, "other"), target: join(outside, "other") },
  ]);
  const { environment } = await initEnvironment(folder, answers, options);
  expect(environment.environment.mounts).toEqual([
    { source: join(outside, "big"), target: "inputs", digest: "stat" },
    { source: join(outside, "other"), target: join(outside, "other"), digest: "stat" },
  ]);
});

test("an ignored folder that no source names is told of, and a folder of results is not", async () => {
  const folder = await fill(await temporaryFolder(), {
    "train.sh": "echo score=1\n",
    "archive/old.csv": "1",
    "runs/last.csv": "1",
    ".gitignore": "archive/\nruns/\n",
  });
  commit(folder);
  const answers = await completeAnswers(folder, {});
  expect(answers.mounts).toEqual([]);
  expect(answers.reasons?.join("\n")).toMatch(/git ignores archive, which no source names/);
});

test("packages of Node are bound where package.json names some", async () => {
  const folder = await fill(await temporaryFolder(), {
    "bench.js": 'import { x } from "some";\nconsole.log("ops_per_sec: 3");\n',
    "package.json": '{ "type": "module", "dependencies": { "some": "1.0.0" } }',
    ".gitignore": "node_modules\n",
  });
  commit(folder);
  expect((await completeAnswers(folder, {})).reasons?.join("\n")).toMatch(/no node_modules: `npm install`/);
  await fill(folder, { "node_modules/some/index.js": "export const x = 1;\n" });
  const answers = await completeAnswers(folder, {});
  expect(answers).toMatchObject({ direction: "maximize", mounts: [{ source: "node_modules", target: "node_modules" }] });
});

test("a conda environment in the folder is found by its conda-meta", async () => {
  const folder = await fill(await temporaryFolder(), { "train.py": "print('score:', 1)\n" });
  await mkdir(join(folder, "env/conda-meta"), { recursive: true });
  await mkdir(join(folder, "env/bin"));
  await symlink("/usr/bin/python3", join(folder, "env/bin/python"));
  await writeFile(join(folder, ".gitignore"), "env/\n");
  commit(folder);
  expect(await completeAnswers(folder, {})).toMatchObject({ run: "env/bin/python train.py" });
});

test("a program of a project file is run as its module", async () => {
  const folder = await fill(await temporaryFolder(), {
    "pyproject.toml": '[project.scripts]\ntrain = "loop.cli:main"\n',
    "src/loop/__init__.py": "",
    "src/loop/cli.py": "def main():\n    print('score:', 1)\n",
  });
  execFileSync("git", ["init", "-q", folder]);
  const answers = await completeAnswers(folder, {});
  expect(answers).toMatchObject({
    edit: ["src/loop/cli.py"],
    run: "PYTHONPATH=src python3 -c 'from loop.cli import main; main()'",
    metric: "score",
  });
  await initEnvironment(folder, answers, options);
  expect(await readFile(join(folder, "environment.yaml"), "utf8")).toContain("from loop.cli import main");
});

test("a folder that holds what may be edited is never bound read-only, however much data lies in it", async () => {
  const folder = await fill(await temporaryFolder(), {
    "train.sh": "echo score=1\n",
    "stage/edit.py": "x\n",
    "stage/weights/a.bin": "x",
    "other/b.bin": "x",
  });
  for (const path of ["stage/weights/a.bin", "other/b.bin"]) await truncate(join(folder, path), 100 * 2 ** 20);
  commit(folder);
  const answers = await completeAnswers(folder, { edit: ["stage/*.py"], run: "sh train.sh", metric: "score" });
  expect(answers.mounts?.map(({ target }) => target).sort()).toEqual(["other", "stage/weights"]);
});
