import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadEnvironment } from "../../src/adapters/environments/load.js";
import { contractWith, makePack, packFiles, problemsOf } from "./environment-fixture.js";

async function problemOf(...replacements: readonly (readonly [string, string])[]) {
  const problems = await problemsOf(await makePack({ "environment.yaml": contractWith(...replacements) }));
  expect(problems).toHaveLength(1);
  return problems[0]!;
}

test("a valid pack is resolved with every default and unit", async () => {
  const { environment } = await loadEnvironment(await makePack());
  const train = environment.stages[1]!;
  expect(environment.stages[0]).toMatchObject({
    preflight: true,
    purpose: null,
    trust: "candidate",
    limits: { wallMs: 10_000, memoryBytes: 4 * 2 ** 30 },
  });
  expect(train.limits).toMatchObject({
    wallMs: 60_000,
    cpuMs: 120_000,
    memoryBytes: 64 * 2 ** 20,
    cpus: 2,
    processes: 256,
    outputBytes: 64 * 2 ** 20,
  });
  expect(environment.stages[2]).toMatchObject({ purpose: "in-loop", repeats: 1, exclusive: false });
  expect(environment.surface).toEqual({ editable: ["solution.sh"], maxBytes: 1024 });
  expect(environment.gates).toEqual([
    { metric: "score", atLeast: 0.5, atMost: null, validity: false },
    { artifact: "answer.txt", atMostBytes: 16_000_000 },
  ]);
  expect(environment.metrics.map((metric) => metric.from)).toEqual([{ kind: "measurement" }, { kind: "wall", stage: "train" }]);
  expect(environment.noise).toEqual({ calibrate: 5, remeasureEvery: 10 });
  expect(environment.promotion).toEqual({ rule: "confirmed", confirmations: 2, level: 0.05, minimumGain: null });
  expect(environment.description).toBe("Write a good answer.\n");
  expect(environment.knowledge).toEqual([{ path: "knowledge/prior.md", text: "Answers are numbers.\n" }]);
});

describe("units", () => {
  test.each([
    ["500 ms", 500],
    ["10 s", 10_000],
    ["1.5 min", 90_000],
    ["2h", 7_200_000],
  ])("%s", async (text, expected) => {
    const { environment } = await loadEnvironment(await makePack({ "environment.yaml": contractWith(["wall: 10 s", `wall: ${text}`]) }));
    expect(environment.stages[0]!.limits.wallMs).toBe(expected);
  });

  test.each([
    ["64 KiB", 65_536],
    ["64 kB", 64_000],
    ["16 MB", 16_000_000],
    ["1 GiB", 2 ** 30],
    ["2000 B", 2000],
  ])("%s", async (text, expected) => {
    const { environment } = await loadEnvironment(await makePack({ "environment.yaml": contractWith(["1 KiB", text]) }));
    expect(environment.surface.maxBytes).toBe(expected);
  });

  test.each([
    ["wall: 10 s", "wall: 10", 'did you mean "10 s"?'],
    ["wall: 10 s", 'wall: "10"', 'did you mean "10 s"?'],
    ["wall: 10 s", "wall: 10 minutes", 'did you mean "10 min"?'],
    ["wall: 10 s", "wall: 10 Sec", 'did you mean "10 s"?'],
    ["wall: 10 s", "wall: 0 s", "more than nothing"],
    ["wall: 10 s", "wall: soon", "a number and a unit"],
    ["memory: 64 MiB", "memory: 64", 'did you mean "64 MiB"?'],
    ["memory: 64 MiB", "memory: 64 mib", 'did you mean "64 MiB"?'],
    ["memory: 64 MiB", "memory: 4g", 'did you mean "4 GiB"?'],
    ["memory: 64 MiB", "memory: 64 parsecs", "use one of the units"],
    ["at_most: 16 MB", "at_most: 16", 'did you mean "16 MiB"?'],
  ])("%s as %s is refused", async (from, to, advice) => {
    const problem = await problemOf([from, to]);
    expect(problem.todo).toContain(advice);
    expect(problem.line).toBeGreaterThan(5);
  });
});

describe("typing errors are found where they are, with the nearest right word", () => {
  test.each([
    ["description:", "descripton:", "did you mean `description`?"],
    ["wall: 10 s", "wal: 10 s", "did you mean `wall`?"],
    ["trust: evaluator", "trust: evalutor", "did you mean `evaluator`?"],
    ["direction: maximize", "direction: maximise", "did you mean `maximize`?"],
    ["{ metric: score,", "{ metric: scroe,", "did you mean `score`?"],
    ["{ wall: train }", "{ wall: trian }", "did you mean `train`?"],
    ["artifact: answer.txt", "artifact: anwser.txt", "did you mean `answer.txt`?"],
    ["description: description.md", "description: desciption.md", "did you mean `description.md`?"],
    ["sh evaluate.sh", "sh evalute.sh", "did you mean `evaluate.sh`?"],
    ["sh playbook/propose.sh", "sh playbook/propse.sh", "did you mean `playbook/propose.sh`?"],
  ])("%s as %s", async (from, to, advice) => {
    const text = contractWith([from, to]);
    const [problem] = (await problemsOf(await makePack({ "environment.yaml": text }))).filter((each) => each.todo === advice);
    const line = text.split("\n").findIndex((each) => each.includes(to)) + 1;
    expect(problem).toMatchObject({ line });
    expect(problem?.file).toMatch(/\/environment\.yaml$/);
    expect(text.split("\n")[line - 1]!.slice((problem?.column ?? 0) - 1)).not.toBe("");
  });

  test("an unknown key's column is the key's own", async () => {
    const problem = await problemOf(["limits: { wall: 10 s }", "limits: { wall: 10 s, proceses: 3 }"]);
    expect(problem).toMatchObject({
      what: "unknown key `proceses` in `stages[0].limits`",
      line: 11,
      column: 70,
      todo: "did you mean `processes`?",
    });
  });
});

test("all problems are said at once, in order", async () => {
  const problems = await problemsOf(
    await makePack({
      "environment.yaml": contractWith(
        ["name: small", "name: small\nsed: 3"],
        ["description.md", "missing.md"],
        ["metric: score", "metric: nothing"],
      ),
    }),
  );
  expect(problems.map((problem) => problem.line)).toEqual([3, 4, 19]);
});

test("GPUs are frozen where a stage takes some, and leave no trace in a contract without", async () => {
  const limitsOf = async (limits: string) =>
    (await loadEnvironment(await makePack({ "environment.yaml": contractWith(["wall: 10 s", limits]) }))).environment.stages[0]?.limits;
  expect(await limitsOf("wall: 10 s, gpus: 2")).toMatchObject({ gpus: 2 });
  for (const none of ["wall: 10 s", "wall: 10 s, gpus: 0"]) expect(Object.keys((await limitsOf(none)) ?? {})).not.toContain("gpus");
  for (const wrong of ["-1", "0.5", "all"]) expect((await problemOf(["wall: 10 s", `wall: 10 s, gpus: ${wrong}`])).what).toContain("gpus");
});

describe("keys of later versions are refused by name", () => {
  test.each([
    ["name: small", "name: small\nevidence: evidence.yaml", "evidence"],
    ["name: small", "name: small\nroles: roles.yaml", "roles"],
    ["name: small", "name: small\npurposes: {}", "purposes"],
    ["run: sh evaluate.sh", "run: sh evaluate.sh, capabilities: [judge]", "capabilities"],
    ["run: sh evaluate.sh", "run: sh evaluate.sh, per_checkpoint: { patience: 4 }", "per_checkpoint"],
    ["run: sh evaluate.sh", "run: sh evaluate.sh, worker: warm", "warm"],
    ["trust: evaluator", "trust: interactive", "interactive"],
  ])("%s → %s", async (from, to, named) => {
    const problems = await problemsOf(await makePack({ "environment.yaml": contractWith([from, to]) }));
    expect(problems.map((problem) => problem.expected).join()).toMatch(new RegExp(`${named}.*not supported yet by this version`));
  });
});

describe("what would weaken the protocol is refused", () => {
  test.each(["API_KEY", "GITHUB_TOKEN", "MY_SECRET", "DB_PASSWORD", "AWS_CREDENTIALS", "HTTP_AUTH"])("the variable %s", async (name) => {
    const problem = await problemOf(["run: sh evaluate.sh", `run: sh evaluate.sh, env: { pass: [${name}] }`]);
    expect(problem.todo).toContain("keep secrets out of stages");
  });

  test.each([
    ["score", "no group"],
    ["((a+)+)", "repeats a repetition"],
    ["(a)\\1", "refers back"],
    ["(a", "no regular expression"],
  ])("the pattern %s", async (pattern, reason) => {
    const problem = await problemOf(["{ wall: train }", `{ stdout: '${pattern}', stage: train }`]);
    expect(problem.todo).toContain(reason);
  });

  test.each([
    ["sh evaluate.sh }", "sh evaluate.sh, outputs: [x] }", "an evaluator declares outputs"],
    ["name: preflight", "name: train", "two stages are called `train`"],
    ["name: seconds", "name: score", "two metrics are called `score`"],
    [", outputs: [answer.txt]", "", "the evaluator has nothing to read"],
    ["  - { name: measure, trust: evaluator, run: sh evaluate.sh }\n", "", "nothing measures `score`"],
    ["playbook:", "promotion: { minimum_gain: 0.1 }\nplaybook:", "`minimum_gain` has no meaning here"],
  ])("%s → %s", async (from, to, what) => {
    const problems = await problemsOf(await makePack({ "environment.yaml": contractWith([from, to]) }));
    expect(problems.map((problem) => problem.what)).toContain(what);
  });
});

test("broken YAML, a doubled key, an empty file and a missing file", async () => {
  const broken = await problemsOf(await makePack({ "environment.yaml": "schema: [trialist\nname: x\n" }));
  expect(broken[0]).toMatchObject({ what: "this is not valid YAML" });
  const doubled = await problemsOf(await makePack({ "environment.yaml": `${packFiles["environment.yaml"]}name: again\n` }));
  expect(doubled[0]).toMatchObject({ what: "a key is written twice", line: 21 });
  const empty = await problemsOf(await makePack({ "environment.yaml": "" }));
  expect(empty[0]).toMatchObject({ expected: "a mapping", line: 1 });
  const folder = await makePack({ "environment.yaml": null });
  expect((await problemsOf(folder))[0]).toMatchObject({ what: "there is no environment here", file: join(folder, "environment.yaml") });
  expect((await problemsOf(join(folder, "nowhere")))[0]).toMatchObject({ found: "no such folder" });
});

describe("numbers that an optimizer may choose", () => {
  const declared = (line: string): string => contractWith(["max_bytes: 1 KiB", `max_bytes: 1 KiB\n  parameters: [${line}]`]);

  test("are resolved with their defaults, and leave the surface of others as it was", async () => {
    const text = declared("{ name: n, file: solution.sh, after: 'echo ', low: 0, high: 9 }");
    const { environment } = await loadEnvironment(await makePack({ "environment.yaml": text }));
    expect(environment.surface.parameters).toEqual([
      { name: "n", file: "solution.sh", after: "echo ", type: "float", low: 0, high: 9, log: false },
    ]);
    expect(Object.keys((await loadEnvironment(await makePack())).environment.surface)).not.toContain("parameters");
  });

  test.each([
    ["{ name: n, file: other.sh, after: 'echo ', low: 0, high: 9 }", "an editable file of the baseline"],
    ["{ name: n, file: solution.sh, after: 'print ', low: 0, high: 9 }", "right after this text"],
    ["{ name: n, file: solution.sh, after: 'echo ', low: 2, high: 9 }", "bounds that hold the baseline's number"],
    ["{ name: n, file: solution.sh, after: 'echo ', low: 9, high: 2 }", "`low` below `high`"],
    ["{ name: n, file: solution.sh, after: 'echo ', low: 0, high: 9, log: true }", "above 0 on a logarithmic scale"],
    ["{ name: n, file: solution.sh, after: 'echo ', low: 0.5, high: 9, type: int }", "whole bounds"],
  ])("%s", async (line, expected) => {
    const [problem] = await problemsOf(await makePack({ "environment.yaml": declared(line) }));
    expect(problem?.expected).toContain(expected);
  });
});
