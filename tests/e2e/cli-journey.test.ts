import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RunSummary, runSummary } from "../../src/research/report/summary-schema.js";
import { Lab, proposes, scriptedResearcher } from "../support/lab.js";
import { buildProgram, document, rowsOf, said, trialist } from "./program.js";

/** What a newcomer does in the first two minutes, command by command: from a folder with one script to a better script in it. */
const seed = 7;

interface Language {
  readonly file: string;
  readonly run: string;
  readonly metric: string;
  readonly direction: "maximize" | "minimize";
  /** The script when its number is this. */
  readonly script: (value: number) => string;
  readonly values: { readonly now: number; readonly better: number; readonly worse: number };
}

const languages: Readonly<Record<string, Language>> = {
  shell: {
    file: "train.sh",
    run: "sh train.sh",
    metric: "score",
    direction: "maximize",
    script: (value) => `#!/bin/sh\nvalue=${value}\necho "step 1"\necho "score: $value"\n`,
    values: { now: 80, better: 90, worse: 70 },
  },
  Python: {
    file: "train.py",
    run: "python3 train.py",
    metric: "loss",
    direction: "minimize",
    script: (value) => `import math\nvalue = ${value}\nprint("loss =", math.sqrt(value * value))\n`,
    values: { now: 0.5, better: 0.25, worse: 0.75 },
  },
  JavaScript: {
    file: "train.mjs",
    run: "node train.mjs",
    metric: "accuracy",
    direction: "maximize",
    script: (value) => `const value = ${value};\nconsole.log(JSON.stringify({ accuracy: value }));\n`,
    values: { now: 0.6, better: 0.7, worse: 0.5 },
  },
};

interface Place {
  readonly lab: Lab;
  readonly isGit: boolean;
  /** Asks for the answer in words, and as one JSON document. */
  say(...words: string[]): Promise<string>;
  ask<T>(...words: string[]): Promise<T>;
  git(...words: string[]): void;
}

function placeIn(lab: Lab, isGit: boolean): Place {
  const variables = { PATH: withStrangeNode(lab) };
  const more = { variables };
  return {
    lab,
    isGit,
    say: (...words) => said(lab, words, more),
    ask: (...words) => document(lab, words, more),
    git: (...words) => {
      if (!isGit) return;
      const nobody = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org", "-c", "init.defaultBranch=main"];
      execFileSync("git", [...nobody, ...words], { cwd: lab.project, stdio: "pipe", env: { PATH: process.env["PATH"], HOME: lab.folder } });
    },
  };
}

/** A PATH on which Node.js lies outside of /usr, as it does with nvm; where it does so anyway, the usual one. */
function withStrangeNode(lab: Lab): string {
  const path = lab.variables["PATH"] ?? "";
  if (!realpathSync(process.execPath).startsWith("/usr/")) return `${dirname(process.execPath)}:${path}`;
  const programs = join(lab.folder, "node-20/bin");
  mkdirSync(programs, { recursive: true });
  writeFileSync(join(programs, "node"), `#!/bin/sh\nexec ${process.execPath} "$@"\n`);
  chmodSync(join(programs, "node"), 0o755);
  return `${programs}:${path}`;
}

beforeAll(buildProgram);

describe("the first two minutes", () => {
  let labs: Lab[] = [];
  beforeEach(() => {
    labs = [new Lab(), new Lab()];
  });
  afterEach(() => {
    for (const lab of labs) lab.remove();
  });

  test.each(Object.entries(languages))("with a %s script, in and outside of git", async (_name, language) => {
    expect.hasAssertions();
    const [inside, outside] = labs;
    if (inside === undefined || outside === undefined) throw new Error("no labs");
    await Promise.all([journey(placeIn(inside, true), language), journey(placeIn(outside, false), language)]);
  });
});

async function journey(place: Place, language: Language): Promise<void> {
  prepare(place, language);
  await becomesAnEnvironment(place, language);
  const finished = await isStudied(place, language);
  // What is read of a run does not depend on the language of its script.
  if (language.file.endsWith(".sh")) {
    await isShown(place, language, finished);
    await isReported(place, language);
  }
  await isApplied(place, language);
  if (language.file.endsWith(".sh")) await travels(place);
  else expect(await place.say("verify", "--all")).toMatch(/^first: .* check out/);
  expect(await place.lab.leftovers()).toEqual([]);
}

function prepare({ lab, git }: Place, { file, script, values }: Language): void {
  writeFileSync(join(lab.project, file), script(values.now));
  const words = [
    proposes({ [file]: script(values.better) }, "a better value"),
    proposes({ [file]: "this is (no program\n" }, "no program"),
    proposes({ [file]: script(values.worse) }, "a worse value"),
  ];
  for (const [path, text] of Object.entries(scriptedResearcher(seed, words))) {
    mkdirSync(dirname(join(lab.project, path)), { recursive: true });
    writeFileSync(join(lab.project, path), text);
  }
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "--message", "a script");
}

async function becomesAnEnvironment(place: Place, { file, run, metric, direction }: Language): Promise<void> {
  const flags = ["--edit", file, "--run", run, "--metric", metric, "--direction", direction, "--name", "program"];
  const made = await place.ask<{ wrote: string[]; notes: string[]; name: string }>("init", "--yes", ...flags);
  const wrote = ["environment.yaml", ...(place.isGit ? [".gitignore"] : [])];
  expect(made).toMatchObject({ name: "program", wrote: wrote.map((name) => join(place.lab.project, name)) });
  if (place.isGit) expect(readFileSync(join(place.lab.project, ".gitignore"), "utf8")).toBe(".trialist/\n");
  if (run.startsWith("node")) expect(made.notes.join("\n")).toMatch(/`node` lies in .*, which is bound read-only and not frozen/);
  place.git("add", ".");
  place.git("commit", "--quiet", "--message", "an environment");

  const again = await trialist(place.lab, ["init", "--yes", ...flags]);
  expect([again.code, again.stderr]).toEqual([2, expect.stringMatching(/one that is there already.*--force/)]);
  const checked = await place.ask<{ held: boolean; proofs: { name: string; held: boolean }[] }>("check");
  expect(checked.proofs.map((proof) => [proof.name, proof.held])).toEqual(
    ["labels", "network", "evaluator", "home", "environment", "processes", "left behind"].map((name) => [name, true]),
  );
  expect(checked.held).toBe(true);
}

async function isStudied(place: Place, { values, metric, direction }: Language): Promise<RunSummary> {
  const flags = ["--researcher", "command:sh answer.sh", "--seed", String(seed), "--drafts", "50", "--max-trials", "3", "--name", "first"];
  const finished = runSummary.parse(await place.ask("run", ".", ...flags));
  expect(finished).toMatchObject({
    run: "first",
    state: "finished",
    sandbox: "bubblewrap",
    metric: { name: metric, direction, selfReported: true },
    baseline: { mean: values.now, sd: 0, n: 5 },
    best: {
      trial: "t1",
      value: values.better,
      hypothesis: "a better value",
      overBaseline: { absolute: expect.closeTo(Math.abs(values.better - values.now), 9) },
    },
    trials: { keep: 1, discard: 1, crashed: 1 },
    progress: { done: 3, cap: 3, open: 0 },
  });
  return finished;
}

async function isShown(place: Place, { file, script, values, metric }: Language, finished: RunSummary): Promise<void> {
  expect(await place.ask("status", "first")).toEqual(finished);
  const [status, shown, one, diff] = [
    await place.say("status", "first"),
    await place.say("show", "first"),
    await place.say("show", "first", "t2"),
    await place.say("diff", "first"),
  ];
  // The answer comes first: what won, by how much, how sure, how often the rule errs, what it cost, what failed most.
  expect(
    status
      .split("\n")
      .map((line) => line.slice(0, 11).trim())
      .filter((label) => label !== "")
      .slice(0, 9),
  ).toEqual(["first finis", "Because", "WARNING", "Won", "Gain", "Sure", "Errors", "Cost", "Failed"]);
  expect(status).toMatch(new RegExp(`Won +t1, ${values.better} ${metric}`));
  expect(Math.max(...status.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
  expect(shown).toMatch(/^\* +t1 +t0 +keep/m);
  expect(one).toMatch(/^t2 {2}crashed[\s\S]*run stderr, its end:/);
  expect(diff).toContain(`--- a/${file}`);
  for (const line of script(values.better)
    .split("\n")
    .filter((each) => !script(values.now).includes(each)))
    expect(diff).toContain(`+${line}`);

  const trials = await place.ask<{ id: string; status: string }[]>("show", "first");
  expect(trials.map(({ id, status }) => [id, status])).toEqual([
    ["t0", "keep"],
    ["t1", "keep"],
    ["t2", "crashed"],
    ["t3", "discard"],
  ]);
  expect(await place.ask("show", "first", "t2")).toEqual(trials[2]);
  expect(await place.ask("diff", "first", "t3", "t1")).toMatchObject({
    trial: "t3",
    against: "t1",
    changes: [{ path: file, kind: "changed", patch: expect.stringContaining(`--- a/${file}`) }],
  });
  expect(await place.ask("list")).toEqual([{ run: "first", state: "finished", best: finished.best, trials: finished.trials, owner: null }]);
  expect(await place.say("list")).toMatch(/^first +finished +best t1 /);
}

const resultColumns = (metric: string): string[] => [
  ...[
    "exp_id",
    "timestamp",
    "specialist",
    "parent_exp",
    "other_parents",
    "baseline_exp",
    "domain",
    "hypothesis",
    "expected_delta",
    "status",
  ],
  ...[metric, `${metric}_confirmed`, "delta_vs_best", "delta_lower", "delta_upper", "verdict", "kept_under_any", "stage", "reason"],
  ...["wall_s", "cpu_s", "candidate", "self_reported", "sandbox", "retracted", "notes"],
];

async function isReported(place: Place, { file, metric, values }: Language): Promise<void> {
  const out = join(place.lab.folder, "report");
  const written = await place.ask<{ run: string; folder: string; files: string[] }>("report", "first", "--out", out);
  const files = ["report.md", "results.tsv", "tree.tsv", "best.json", "LEADERBOARD.md"];
  expect(written).toEqual({ run: "first", folder: out, files, attribution: null });
  expect(readdirSync(out).sort()).toEqual([...files].sort());
  const text = (name: string): string => readFileSync(join(out, name), "utf8");
  const results = rowsOf(text("results.tsv"));
  expect(results.header).toEqual(resultColumns(metric));
  expect(
    results.rows.map((row) => [row["exp_id"], row["parent_exp"], row["status"], row[metric], row["stage"], row["self_reported"]]),
  ).toEqual([
    ["t1", "t0", "keep", String(values.better), "", "true"],
    ["t2", "t0", "crashed", "", "run", "false"],
    ["t3", "t0", "discard", String(values.worse), "", "true"],
  ]);
  for (const { timestamp = "" } of results.rows) expect(new Date(timestamp).toISOString()).toBe(timestamp);
  const tree = rowsOf(text("tree.tsv"));
  expect(tree.rows.map(({ exp_id, depth, path }) => [exp_id, depth, path])).toEqual([
    ["t0", "0", "t0"],
    ["t1", "1", "t0/t1"],
    ["t2", "1", "t0/t2"],
    ["t3", "1", "t0/t3"],
  ]);
  expect(JSON.parse(text("best.json"))).toMatchObject({
    schema: "trialist/best@1",
    run: "first",
    best: { trial: "t1", value: values.better },
    values: { [metric]: values.better },
    hypothesis: "a better value",
    candidate: { manifest: { files: [{ path: file }] } },
  });
  expect(text("LEADERBOARD.md")).toMatch(/\| 1 \| t1 \| keep \|/);
  expect(text("report.md")).toMatch(/^# first\n\n\*\*finished\*\*[\s\S]*\*\*Won:\*\* t1/);
  // Without --out it goes into the run's folder, and is printed.
  expect(await place.say("report", "first")).toBe(`${text("report.md")}\n`);
  expect(readFileSync(join(place.lab.project, ".trialist/runs/first/report/results.tsv"), "utf8")).toBe(text("results.tsv"));
}

async function isApplied(place: Place, { file, script, values }: Language): Promise<void> {
  const { lab } = place;
  const target = join(lab.project, file);
  const refused = async (reason: RegExp): Promise<void> => {
    const [before, names] = [readFileSync(target, "utf8"), readdirSync(lab.project).sort()];
    const { code, stdout, stderr } = await trialist(lab, ["apply", "first"]);
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(reason)]);
    expect(readFileSync(target, "utf8")).toBe(before);
    expect(readdirSync(lab.project).sort()).toEqual(names);
  };
  const names = readdirSync(lab.project).sort();
  writeFileSync(target, `${script(values.now)}\n`);
  await refused(new RegExp(`the file as the run's baseline has it; found ${file} with other content.*apply again`));
  writeFileSync(target, script(values.now));
  expect(await place.ask("apply", "first")).toEqual({ run: "first", trial: "t1", folder: lab.project, written: [file], removed: [] });
  expect(readFileSync(target, "utf8")).toBe(script(values.better));
  expect(readdirSync(lab.project).sort()).toEqual(names);
  // In git it is uncommitted work now; elsewhere nothing but its content can be known.
  if (place.isGit) await refused(new RegExp(`no uncommitted work in the files that would be written; found ${file}.*Commit or stash`));
  place.git("commit", "--quiet", "--all", "--message", "the best");
  expect(await place.say("apply", "first")).toMatch(new RegExp(`^t1 is in .*: ${file}\n$`));
}

async function travels(place: Place): Promise<void> {
  const { lab } = place;
  const file = join(lab.folder, "first.jsonl");
  const exported = await place.ask<{ events: number; blobs: number; chain: string }>("export", "first", "--out", file);
  expect(
    readFileSync(file, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown).length,
  ).toBeGreaterThan(exported.events);
  expect((await trialist(lab, ["export", "first", "--out", file])).code).toBe(2);
  const { events, blobs, chain } = exported;
  expect(await place.ask("import", file, "--name", "again")).toEqual({ run: "first", events, blobs, chain, missingBlobs: 0 });
  const whole = { ok: true, problem: null, events, chain };
  expect(await place.ask("verify", "--all")).toEqual([
    { run: "again", blobs: expect.any(Number), ...whole },
    { run: "first", blobs: expect.any(Number), ...whole },
  ]);
  const status = await place.ask<RunSummary>("status", "again");
  expect(status).toMatchObject({ run: "again", state: "finished", best: { trial: "t1" } });
  expect((await trialist(lab, ["apply", "again"])).stderr).toMatch(/an imported run\. Name the folder with --to/);

  expect(await place.ask("retract", "first", "t1", "--reason", "it looked")).toEqual({
    run: "first",
    retracted: "t1",
    dependents: [],
    best: "t0",
  });
  expect(await place.ask<RunSummary>("status", "first")).toMatchObject({ best: { trial: "t0" }, retractions: [{ trial: "t1" }] });
  expect(await place.say("report", "first")).toMatch(/it looked/);
  const listed = await place.ask<{ run: string; best: { trial: string } }[]>("list");
  expect(listed.map(({ run, best }) => [run, best.trial])).toEqual([
    ["again", "t1"],
    ["first", "t0"],
  ]);
  expect(await place.say("verify", "--all")).toMatch(/^again: .* check out.*\nfirst: .* check out/);
}

describe("apply", () => {
  const lab = new Lab();
  const before = {
    "main.sh": "echo one > $TRIALIST_OUTPUT/x; cat parts/old.sh\necho 'score: 1'\n",
    "parts/old.sh": "echo old\n",
    "parts/kept.sh": "echo kept\n",
  };
  const after = { "main.sh": "echo 'score: 2'\n", "parts/new.sh": "echo new\n", "parts/deep/er.sh": "echo deep\n" };

  beforeAll(async () => {
    const both = proposes({ ...after, "parts/old.sh": null });
    const other = proposes({ "parts/kept.sh": "echo other\n" });
    lab.write({
      ...Object.fromEntries(Object.entries(before).map(([path, text]) => [`baseline/${path}`, text])),
      ...scriptedResearcher(seed, [both, other]),
      "environment.yaml": `schema: trialist/environment@1
name: parts
surface: { editable: ["main.sh", "parts/**"] }
stages: [{ name: run, run: sh main.sh }]
metrics: [{ name: score, direction: maximize, from: { stdout: "score: (\\\\d+)" } }]
noise: { calibrate: 2 }
promotion: { rule: any }
`,
    });
    const flags = ["--researcher", "command:sh answer.sh", "--seed", String(seed), "--drafts", "50", "--max-trials", "2", "--name", "run"];
    await said(lab, ["run", lab.pack, ...flags]);
  });
  afterAll(() => lab.remove());

  function copy(name: string): string {
    const folder = join(lab.folder, name);
    cpSync(join(lab.pack, "baseline"), folder, { recursive: true });
    return folder;
  }

  function contents(folder: string): Record<string, string> {
    const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    return Object.fromEntries(
      files
        .map(({ parentPath, name }) => join(parentPath, name))
        .map((path) => [path.slice(folder.length + 1), readFileSync(path, "utf8")]),
    );
  }

  test("writes, adds and removes what the candidate did, and nothing else", async () => {
    const folder = copy("well");
    const applied = await document(lab, ["apply", "run", "--to", folder]);
    expect(applied).toMatchObject({
      trial: "t1",
      folder,
      written: ["main.sh", "parts/deep/er.sh", "parts/new.sh"],
      removed: ["parts/old.sh"],
    });
    expect(contents(folder)).toEqual({ ...after, "parts/kept.sh": before["parts/kept.sh"] });
  });

  const obstacles: readonly [what: string, put: (folder: string) => void, reason: RegExp][] = [
    [
      "a file of another's that it would write",
      (folder) => writeFileSync(join(folder, "parts/new.sh"), "mine\n"),
      /parts\/new\.sh with other content/,
    ],
    [
      "a changed file that it would remove",
      (folder) => writeFileSync(join(folder, "parts/old.sh"), "mine\n"),
      /parts\/old\.sh with other content/,
    ],
    ["a file where it needs a folder", (folder) => writeFileSync(join(folder, "parts/deep"), "mine\n"), /parts\/deep/],
    ["a folder where it needs a file", (folder) => mkdirSync(join(folder, "parts/new.sh")), /parts\/new\.sh, which is none/],
    [
      "a link that leads out",
      (folder) => symlinkSync(lab.gate, join(folder, "parts/deep")),
      /parts\/deep\/er\.sh, which a link leads out of it/,
    ],
    [
      "a link in place of a file",
      (folder) => symlinkSync(join(lab.pack, "evaluate.sh"), join(folder, "parts/new.sh")),
      /parts\/new\.sh, which is none/,
    ],
    [
      "a changed file that it leaves alone, beside which it is not what was measured",
      (folder) => writeFileSync(join(folder, "parts/kept.sh"), "mine\n"),
      /parts\/kept\.sh with other content/,
    ],
  ];

  test.each(obstacles)("finds %s: nothing is written", async (what, put, reason) => {
    const folder = copy(what.replaceAll(" ", "-").slice(0, 60));
    put(folder);
    const [found, all] = [contents(folder), readdirSync(folder, { recursive: true }).sort()];
    const { code, stderr } = await trialist(lab, ["apply", "run", "--to", folder]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(reason)]);
    expect(contents(folder)).toEqual(found);
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual(all);
    expect(readdirSync(lab.gate)).toEqual([]);
  });

  test("does not mix two trials", async () => {
    const folder = copy("mixed");
    await said(lab, ["apply", "run", "t2", "--to", folder]);
    const { code, stderr } = await trialist(lab, ["apply", "run", "t1", "--to", folder]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/parts\/kept\.sh with other content/)]);
    expect(contents(folder)).toEqual({ ...before, "parts/kept.sh": "echo other\n" });
  });
});
