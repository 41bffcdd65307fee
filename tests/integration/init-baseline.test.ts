import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { InitAnswers, InitResult } from "../../src/adapters/environments/init.js";
import { loadEnvironment } from "../../src/adapters/environments/load.js";
import { type Host, openHost } from "../../src/app/environments.js";
import { initFolder, type MeasuredInit, measureInit } from "../../src/app/init.js";
import { fill, temporaryFolder } from "./environment-fixture.js";
import { commit, makeShape } from "./init-shapes.js";

// The system's Python, whatever this machine has before it on the PATH.
beforeEach(() => {
  vi.stubEnv("PATH", `${dirname(process.execPath)}:/usr/bin:/bin`);
  return () => vi.unstubAllEnvs();
});

async function temporaryHost(): Promise<Host> {
  return openHost({ ...process.env, TRIALIST_CACHE: join(await temporaryFolder(), "cache") });
}

async function measured(
  folder: string,
  given: Partial<InitAnswers> = {},
  controller = new AbortController(),
): Promise<MeasuredInit & { made: InitResult; lines: string[] }> {
  const made = await initFolder(folder, given, { ask: false, force: true });
  const lines: string[] = [];
  const listener = { progress: () => undefined, live: (_: string, __: number, line: string) => lines.push(line) };
  const result = await measureInit(await temporaryHost(), made, { ask: false, listener, signal: controller.signal });
  return { ...result, made, lines };
}

const contractOf = (folder: string): Promise<string> => readFile(join(folder, "environment.yaml"), "utf8");

describe("a repository becomes an environment whose baseline gives a number, with nothing said", () => {
  test.each([
    ["tabular", "val.mse", 3.5 / 3],
    ["packaged", "val_loss", 0.262144],
  ] as const)("%s", async (shape, metric, value) => {
    const folder = await makeShape(shape);
    const { baseline, costs, limits } = await measured(folder);
    expect(baseline).toMatchObject({ status: "measured", hints: [], reason: null });
    expect(baseline.values?.[metric]).toBeCloseTo(value, 9);
    expect(baseline.trialMs).toBeGreaterThanOrEqual(baseline.wallMs);
    expect(costs).toMatchObject({ repetitions: 5, confirmations: 0, trialMs: baseline.trialMs });
    const { environment } = await loadEnvironment(folder);
    expect(limits).not.toBeNull();
    expect(await contractOf(folder)).toContain(`wall: ${limits?.wall}, memory: ${limits?.memory}`);
    expect(environment.stages[0]?.limits.wallMs).toBeGreaterThanOrEqual(30_000);
  });

  test("script, in a folder with spaces and other letters in its name", async () => {
    const folder = await makeShape("script", join(await temporaryFolder(), "mein Vergleich – ü (1) it's"));
    const { baseline } = await measured(folder);
    expect(baseline.status).toBe("measured");
    expect(baseline.values?.comparisons_score).toBeLessThan(0);
  });

  test("a wall limit that was given stays", async () => {
    const folder = await makeShape("packaged");
    await measured(folder, { wall: "2 h" });
    expect((await loadEnvironment(folder)).environment.stages[0]?.limits.wallMs).toBe(7_200_000);
  });
});

describe("a baseline without a number says why, and what to do; the file stays with a note", () => {
  const failing: [what: string, files: Record<string, string>, given: Partial<InitAnswers>, status: string, hint: RegExp][] = [
    [
      "a module that is not there",
      { "train.py": "import surely_not_there\nprint('score:', 1)\n" },
      {},
      "crashed",
      /has no surely_not_there: put it into an environment/,
    ],
    [
      "a package of Node",
      { "train.cjs": "require('not-there');\nconsole.log('score: 1');\n" },
      { run: "/usr/bin/node train.cjs" },
      "crashed",
      /has no not-there: `npm install`/,
    ],
    [
      "an ignored file below a folder",
      { "train.py": "open('/'.join(['cor' + 'pus', 'a.txt']))\nprint('score:', 1)\n", "corpus/a.txt": "x", ".gitignore": "corpus\n" },
      {},
      "crashed",
      /corpus\/a\.txt is here, and a stage does not see it: .*--mount corpus` binds it/,
    ],
    [
      "a file that is nowhere",
      { "train.sh": "set -e\ncat gone/a.txt\necho score=1\n" },
      {},
      "crashed",
      /gone\/a\.txt is not on this machine either/,
    ],
    [
      "the network",
      { "train.py": "import urllib.request\nurllib.request.urlopen('https://example.org/data.csv')\nprint('score:', 1)\n" },
      {},
      "crashed",
      /stages have no network/,
    ],
    [
      "a number under another name",
      { "train.sh": "echo accuracy=0.5\n" },
      { metric: "score" },
      "no_result",
      /names these numbers: accuracy; give one with --metric/,
    ],
    ["no number at all", { "train.sh": "echo done\n" }, { metric: "score" }, "no_result", /let the program print `score: 0\.123`/],
    ["too little time", { "train.sh": "sleep 60; echo score=1\n" }, { wall: "500 ms" }, "timed_out", /--wall '2 h'/],
  ];

  test.each(failing)("%s", async (_, files, given, status, hint) => {
    const folder = await fill(await temporaryFolder(), files);
    commit(folder);
    const { baseline, costs, limits } = await measured(folder, given);
    expect(baseline.status).toBe(status);
    expect(baseline.hints.join("\n")).toMatch(hint);
    expect([costs, limits]).toEqual([null, null]);
    expect(await contractOf(folder)).toMatch(new RegExp(`^# NOTE: .*the baseline gave no number: ${status}: `, "m"));
    await loadEnvironment(folder);
  });

  test("what a program prints breaks nothing out of the note", async () => {
    const folder = await fill(await temporaryFolder(), { "train.sh": "exit 3\n" });
    const made = await initFolder(folder, { metric: "score" }, { ask: false, force: true });
    await made.rewrite({ note: 'bad\nname: "other"\r\u2028x: y\u0085z\u001b[31m' });
    expect(await contractOf(folder)).toContain('baseline gave no number: bad name: "other" x: y z [31m\n');
    expect((await loadEnvironment(folder)).environment.name).toBe(made.environment.environment.name);
  });
});

describe("a JSON file of the candidate is read with suspicion", () => {
  const writes = (command: string): Record<string, string> => ({ "train.sh": `mkdir -p results\n${command}\n` });
  test.each([
    ["a number", 'printf \'{"val":{"loss":0.25}}\' > results/m.json', "measured", null],
    ["no file, though one was committed", ":", "no_result", /without writing results\/m\.json/],
    ["a link to a file with a number", 'printf \'{"val":{"loss":1}}\' > x; ln -sf ../x results/m.json', "no_result", /symbolic link/],
    ["a FIFO", "rm -f results/m.json; mkfifo results/m.json", "no_result", /results\/m\.json/],
    ["NaN", 'printf \'{"val":{"loss":NaN}}\' > results/m.json', "no_result", /it is no JSON/],
    ["text", 'printf \'{"val":{"loss":"0.1"}}\' > results/m.json', "no_result", /no finite number/],
    [
      "a giant",
      "head -c 9000000 /dev/zero | tr '\\\\0' ' ' > results/m.json; printf '{\"val\":{\"loss\":1}}' >> results/m.json",
      "no_result",
      /at most 8388608 bytes/,
    ],
  ])("%s", async (_, command, status, reason) => {
    const folder = await fill(await temporaryFolder(), { ...writes(command), "results/m.json": '{"val":{"loss":9}}' });
    const { baseline } = await measured(folder, { metric: "val.loss", metricFile: "results/m.json" });
    expect(baseline.status).toBe(status);
    if (reason === null) expect(baseline.values).toEqual({ "val.loss": 0.25 });
    else expect(baseline.reason).toMatch(reason);
  });
});

test("a program that writes below TRIALIST_OUTPUT by itself is run as it is", async () => {
  const folder = await fill(await temporaryFolder(), { "train.sh": 'echo \'{"loss":2}\' > "$TRIALIST_OUTPUT/m.json"\n' });
  const { baseline, made } = await measured(folder, { metric: "loss", metricFile: "m.json" });
  expect(made.environment.environment.stages[0]?.run).toBe("sh train.sh");
  expect(baseline.values).toEqual({ loss: 2 });
});

test("while it runs its last line is heard, and whoever leaves stops it", async () => {
  const folder = await fill(await temporaryFolder(), { "train.sh": "echo at work; sleep 300; echo score=1\n" });
  const controller = new AbortController();
  const made = await initFolder(folder, {}, { ask: false, force: true });
  const heard: string[] = [];
  const listener = {
    progress: () => undefined,
    live: (_: string, __: number, line: string): void => {
      heard.push(line);
      controller.abort();
    },
  };
  const { baseline } = await measureInit(await temporaryHost(), made, { ask: false, listener, signal: controller.signal });
  expect(heard[0]).toBe("at work");
  expect(baseline).toMatchObject({ status: "interrupted", values: null, hints: [] });
});
