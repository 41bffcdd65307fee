import { cpSync, mkdirSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { join, relative } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { RunSummary } from "../../src/research/report/summary-schema.js";
import { Lab, numberPack, prints, proposes, scoring, scriptedResearcher } from "../support/lab.js";
import { buildProgram, document, expectPlain, inPairs, rowsOf, said, trialist } from "./program.js";

/** What must not come out: held-out values, the host's secrets, and what strangers' words could do to a reader. */
const seed = 13;
let lab: Lab;

beforeAll(buildProgram);
beforeEach(() => {
  lab = new Lab();
});
afterEach(() => lab.remove());

const starts = (name: string, trials: number, ...more: string[]): string[] => [
  ...["run", lab.pack, "--name", name, "--researcher", "command:sh answer.sh", "--seed", String(seed), "--drafts", "50"],
  ...["--max-trials", String(trials), ...more],
];

/** Files below a folder that hold a text, by relative path. */
function holding(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => readFileSync(path).includes(text))
    .map((path) => relative(folder, path));
}

describe("heldout", () => {
  // The label of each split is added to what a candidate prints: 5001 in-loop, 481516230000 held-out.
  const secret = "481516230";
  const files = (): Record<string, string> => ({
    ...numberPack({ seed, words: [proposes(scoring(300))], rule: "any" }),
    "environment.yaml": `schema: trialist/environment@1
name: secretive
surface: { editable: ["main.sh"] }
data: { public: data/public, inloop: data/inloop, heldout: data/heldout }
stages:
  - { name: train, run: sh main.sh, outputs: [out.txt] }
  - { name: measure, trust: evaluator, run: sh evaluate.sh }
  - { name: final, trust: held-out, run: sh evaluate.sh, purpose: held-out }
metrics: [{ name: score, direction: maximize }]
noise: { calibrate: 2, remeasure_every: 0 }
promotion: { rule: any }
`,
    "evaluate.sh": `value=$(($(cat $TRIALIST_ARTIFACTS/out.txt) + $(cat $TRIALIST_LABELS/label)))
echo "the score is $value"
printf '{"metrics":{"score":%s}}' $value > $TRIALIST_MEASUREMENT\n`,
    "data/public/nothing.txt": "nothing\n",
    "data/inloop/label": "5001\n",
    "data/heldout/label": "481516230000\n",
  });

  test("is refused while the run can go on, then shows both scores, counts looks, and leaves no trace in the run", async () => {
    lab.write(files());
    // Nobody wrote a second answer: the run stops for a person to look.
    const stopped = await trialist(lab, starts("run", 2));
    expect([stopped.code, stopped.stdout]).toEqual([
      4,
      expect.stringMatching(
        /suspended[\s\S]*no admissible candidate[\s\S]*trialist fork run[\s\S]*trialist finish run[\s\S]*trialist resume run/,
      ),
    ]);
    const early = await trialist(lab, ["heldout", "run"]);
    expect([early.code, early.stdout, early.stderr]).toEqual([
      2,
      "",
      expect.stringMatching(/a run that is over; found run, which is suspended.*finish run/),
    ]);
    const runFolder = join(lab.project, ".trialist/runs/run");
    expect(readdirSync(runFolder).filter((name) => name.startsWith("sealed"))).toEqual([]);
    // The other two ways to tell it what to do; the second on a copy, which is then over.
    const told = { by: "this process", version: expect.any(Number) };
    expect(await document(lab, ["pause", "run", "--reason", "lunch"])).toEqual({ run: "run", phase: "suspended", ...told });
    cpSync(runFolder, join(lab.project, ".trialist/runs/copy"), { recursive: true });
    expect(await document(lab, ["cancel", "copy", "--reason", "wrong data"])).toEqual({ run: "copy", phase: "cancelled", ...told });
    expect((await trialist(lab, ["resume", "copy"])).stderr).toMatch(/a run that is not over; found copy, which is cancelled: wrong data/);
    expect(await said(lab, ["finish", "run", "--reason", "enough"])).toMatch(/^run is finishing\n.*`trialist resume run` lets/);
    await said(lab, ["resume", "run"]);

    const status = await document<RunSummary>(lab, ["status", "run"]);
    expect(status).toMatchObject({ state: "finished", best: { trial: "t1" } });
    const inloop = status.best?.value ?? 0;
    const first = await document<{ heldout: { score: number } }>(lab, ["heldout", "run", "--reason", "curious"]);
    expect(first).toMatchObject({ run: "run", trial: "t1", failure: null, inloop: { score: inloop }, looks: 1 });
    expect(first.heldout.score).toBeGreaterThan(481516230000);
    const second = await said(lab, ["heldout", "run", "t0"]);
    expect(second).toMatch(/^t0 {2}score {2}held-out 4815\d+ {3}in-loop 5\d+\nLooks at this run's held-out split so far: 2\n$/);
    expect(await document<{ looks: number }>(lab, ["heldout", "run"])).toMatchObject({ ...first, looks: 3 });

    const out = join(lab.folder, "out");
    mkdirSync(out);
    const words = await inPairs(
      [
        ["status", "run"],
        ["status", "run", "--json"],
        ["show", "run", "t1"],
        ["show", "run", "--json"],
        ["report", "run", "--out", join(out, "report")],
        ["report", "run"],
        ["export", "run", "--out", join(out, "run.jsonl")],
        ["list", "--json"],
        ["verify", "run"],
      ],
      (each) => said(lab, each),
    );
    expect(words.join("\n")).toContain(String(inloop));
    expect(words.filter((each) => each.includes(secret))).toEqual([]);
    expect(holding(out, secret)).toEqual([]);
    expect(holding(join(lab.project, ".trialist"), secret).filter((path) => path !== "runs/run/sealed.sqlite")).toEqual([]);
    expect(holding(runFolder, secret)).toContain("sealed.sqlite");
    // What the look ran in is gone too; the frozen pack and its data stay.
    expect([...holding(join(lab.cache, "scratch"), secret), ...holding(join(lab.cache, "executors"), secret)]).toEqual([]);
    expect(await lab.leftovers()).toEqual([]);
  });
});

describe("the host's secrets", () => {
  const secret = "planted-secret-123";
  const variables = { MY_API_KEY: secret, ["AWS_SECRET_ACCESS_KEY"]: secret, LC_PLANTED: secret };
  const everything = "env; cat /proc/self/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n'";
  /** A researcher that puts its environment into its hypothesis. */
  const tellsAll = (files: Readonly<Record<string, string>>): string =>
    [
      "found=$( (env; tr '\\0' '\\n' < /proc/self/environ) | tr -d '\"\\\\' | tr '\\n' ' ')",
      `printf '{"plan":{"hypothesis":"%s"},"files":%s}' "it sees $found" '${JSON.stringify(files).replaceAll("'", "'\\''")}'`,
      "",
    ].join("\n");

  test.each(["bubblewrap", "none"])(
    "are in no record of a run with --sandbox %s, whatever a candidate and a researcher print",
    async (sandbox) => {
      const words = [
        tellsAll(scoring(300)),
        proposes({ "main.sh": `${sandbox === "none" ? "env" : everything}; env >&2; exit 3\n` }),
        "env >&2; exit 4\n",
      ];
      lab.write(numberPack({ seed, words, rule: "any" }));
      const run = await trialist(lab, starts("run", 3, "--sandbox", sandbox), { variables });
      expect(run.code).toBe(4);
      const [shown, crashed, , status] = await inPairs(
        [
          ["show", "run", "t1"],
          ["show", "run", "t2"],
          ["report", "run", "--out", join(lab.folder, "report")],
          ["status", "run"],
          ["export", "run"],
        ],
        (each) => said(lab, each, { variables }),
      );
      // They did print it.
      expect(shown).toMatch(/Hypothesis it sees [\s\S]*PATH=/);
      expect(crashed).toMatch(/stderr, its end:[\s\S]*PATH=/);
      expect(status).toMatch(/exited with code/);
      expect(holding(lab.folder, "PATH=")).toEqual(expect.arrayContaining(["report/report.md", "project/run.jsonl"]));
      expect(holding(lab.folder, secret)).toEqual([]);
      expect(run.stdout + run.stderr).not.toContain(secret);
      expect([shown, crashed, status].join("\n")).not.toContain(secret);
    },
  );
});

describe("a stranger's words", () => {
  const marks = "\u001b]0;evil\u0007\u001b[2J\u001b[31m\u009b5m\u202egnp.\u2028\u200b\u0000\r";
  const words = `${marks}<script>alert(1)</script> | forged | cells | [click](http://evil.example) <img src=x onerror=alert(1)>\n# heading\n\tand\ttabs ${"y".repeat(100_000)}`;
  const crash = `cat <<'END'\n${words.replaceAll("\u0000", "")}\nEND\ncat <<'END' >&2\n=cmd|calc ${marks.replaceAll("\u0000", "")}\`\`\`\n# heading\nEND\nexit 3\n`;

  test("do nothing to a terminal, a table, a page or a sheet", async () => {
    lab.write(
      numberPack({
        seed,
        rule: "any",
        words: [
          proposes({ "main.sh": `# ${marks.replaceAll("\u0000", "")}\n${scoring(300)["main.sh"]}` }, words),
          proposes({ "main.sh": crash }, `=1+1\t${words}`),
          // Not its own file: refused, and its name is told.
          { 1: prints(JSON.stringify({ plan: { hypothesis: words }, files: { [`x${marks}`]: "1" } })), 2: proposes(scoring(200), words) },
        ],
      }),
    );
    const run = await trialist(lab, starts("run", 3, "--max-time", "10min"));
    expect(run.code).toBe(0);
    const out = join(lab.folder, "report");
    const said_ = await inPairs(
      [
        ["status", "run"],
        ["show", "run"],
        ["show", "run", "t1"],
        ["show", "run", "t2"],
        ["diff", "run"],
        ["report", "run", "--out", out],
        ["list"],
        ["status", "run", "--json"],
        ["show", "run", "--json"],
        ["diff", "run", "t2", "--json"],
      ],
      (each) => trialist(lab, each),
    );
    expect(said_.map(({ code }) => code)).toEqual(said_.map(() => 0));
    for (const { stdout, stderr } of [run, ...said_]) {
      expectPlain(stdout);
      expectPlain(stderr);
    }
    for (const { stdout } of said_.slice(-3)) expect(JSON.stringify(JSON.parse(stdout)).length).toBeGreaterThan(100);
    // It was told, and shown for what it is.
    expect(said_[2]?.stdout).toContain("\\u{1b}]0;evil");
    for (const { stdout } of said_.slice(0, 4))
      expect(Math.max(...stdout.split("\n").map((line) => [...line].length))).toBeLessThanOrEqual(110);
    for (const line of run.stderr.split("\n")) expect([...line].length).toBeLessThanOrEqual(200);

    const file = (name: string): string => readFileSync(join(out, name), "utf8");
    for (const name of ["report.md", "LEADERBOARD.md", "results.tsv", "tree.tsv"]) expectPlain(file(name));
    expect(JSON.parse(file("best.json"))).toMatchObject({ best: { trial: "t1" }, hypothesis: expect.stringContaining("<script>") });
    for (const name of ["results.tsv", "tree.tsv"]) {
      const { rows } = rowsOf(file(name));
      expect(rows.map(({ exp_id }) => exp_id)).toEqual(name === "tree.tsv" ? ["t0", "t1", "t2", "t3"] : ["t1", "t2", "t3"]);
      expect(rows.flatMap((row) => Object.values(row).filter((cell) => /^[=+@]|^-[^\d]/.test(cell)))).toEqual([]);
    }
    for (const name of ["report.md", "LEADERBOARD.md"]) {
      const prose = withoutBlocks(file(name));
      expect(prose).not.toMatch(/<script|<img|(?<!\\)\]\(|^# heading/m);
      expect(prose.match(/^# .*/gm)).toHaveLength(1);
      for (const table of tablesOf(prose)) expect(new Set(table.map(columnsOf)).size).toBe(1);
    }
    // A 100 KB hypothesis is no 100 KB report.
    expect(file("report.md").length).toBeLessThan(60_000);
  });

  test("in the name of a file are shown for what they are", async () => {
    const path = "parts/\u202egnp.sh";
    lab.write({
      ...numberPack({ seed, words: [], rule: "any" }),
      ...scriptedResearcher(seed, [proposes({ ...scoring(300), [path]: "echo\n" })]),
    });
    const yaml = readFileSync(join(lab.pack, "environment.yaml"), "utf8").replace('["main.sh"]', '["main.sh", "parts/**"]');
    lab.write({ "environment.yaml": yaml, "baseline/parts/one.sh": "echo\n" });
    expect((await trialist(lab, starts("run", 1))).code).toBe(0);
    const shown = await inPairs(
      [
        ["show", "run", "t1"],
        ["diff", "run"],
        ["report", "run"],
        ["apply", "run"],
        ["apply", "run", "--json"],
      ],
      (each) => said(lab, each),
    );
    expect(shown[0]).toContain("parts/\\u{202e}gnp.sh");
    expect(shown[3]).toContain("parts/\\u{202e}gnp.sh");
    expect(JSON.parse(shown[4] ?? "")).toMatchObject({ written: ["main.sh", path] });
    expect(readdirSync(realpathSync(join(lab.pack, "baseline/parts"))).sort()).toEqual(["one.sh", "\u202egnp.sh"]);
  });
});

function withoutBlocks(text: string): string {
  return text.replaceAll(/^(`{3,}).*\n[\s\S]*?^\1$/gm, "");
}

function tablesOf(text: string): string[][] {
  return text
    .split(/\n\n+/)
    .map((block) => block.split("\n").filter((line) => line.startsWith("|")))
    .filter((lines) => lines.length > 0);
}

function columnsOf(line: string): number {
  return [...line.matchAll(/(?<!\\)\|/g)].length;
}
